//! Access to the admin port: free, or with `admin-token` if one is set. The token is in the
//! `Authorization` header or, for the page in a browser, in the address.

use crate::sessions::password::same_bytes;
use crate::web::{Admin, plain};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::sync::Arc;
use std::net::IpAddr;

/// Lets a request through, or answers it.
pub(crate) async fn check(
    State(admin): State<Arc<Admin>>,
    request: Request,
    next: Next,
) -> Response {
    match admin.token() {
        Some(token) => {
            let shown = token_of(request.headers(), request.uri().query());
            if !shown.is_some_and(|shown| same_bytes(&shown, &token)) {
                let ask = [(WWW_AUTHENTICATE, "Bearer realm=\"sheafdb\"")];
                let why = "a token is needed: open /?token=... in the browser, \
                    or send the header Authorization: Bearer ...\n";
                return (ask, plain(StatusCode::UNAUTHORIZED, why)).into_response();
            }
        }
        None if admin.loopback && !is_local_name(request.headers()) => {
            let why = "this port serves its own machine under the name localhost or by address; \
                for other names set admin-token\n";
            return plain(StatusCode::FORBIDDEN, why);
        }
        None => {}
    }
    next.run(request).await
}

/// Lets a request for the live page or its figures through, which show commands and addresses of
/// clients: beyond this machine only where a token guards them.
pub(crate) async fn check_page(
    State(admin): State<Arc<Admin>>,
    request: Request,
    next: Next,
) -> Response {
    if !admin.loopback && admin.token().is_none() {
        let why = "beyond its own machine this port shows the live page only with the setting admin-token; \
            there are /metrics /healthz /readyz\n";
        return plain(StatusCode::FORBIDDEN, why);
    }
    next.run(request).await
}

/// The token in a request.
fn token_of(headers: &HeaderMap, query: Option<&str>) -> Option<Vec<u8>> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        return scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii().to_vec());
    }
    let token = query?.split('&').find_map(|pair| pair.strip_prefix("token="))?;
    Some(decode(token))
}

/// Percent-encoded text of a query as bytes; what is no code stays unchanged.
fn decode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let code = others.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        let code = code.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let coded = code.and_then(|d| u8::from_str_radix(d, 16).ok()).filter(|_| first == b'%');
        rest = if coded.is_some() { &others[2..] } else { others };
        out.push(coded.unwrap_or(if first == b'+' { b' ' } else { first }));
    }
    out
}

/// Whether the request is addressed to this machine by a local name. A foreign page whose name
/// resolves to this machine sends that name (DNS rebinding); it must not read what is for this
/// machine only.
fn is_local_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(name: axum::http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_token_is_read_from_the_header_or_the_query() {
        let none = HeaderMap::new();
        let bearer = headers(AUTHORIZATION, "bearer a b ");
        assert_eq!(token_of(&bearer, None).as_deref(), Some(&b"a b"[..]));
        assert_eq!(token_of(&bearer, Some("token=x")).as_deref(), Some(&b"a b"[..]));
        assert_eq!(token_of(&headers(AUTHORIZATION, "Basic YTpi"), Some("token=x")), None);
        assert_eq!(token_of(&headers(AUTHORIZATION, "x"), None), None);
        let asked = |query| token_of(&none, Some(query));
        assert_eq!(asked("a=1&token=s%2Fp+q%"), Some(b"s/p q%".to_vec()));
        assert_eq!(asked("token=%+1%zz%41"), Some(b"% 1%zzA".to_vec()));
        assert_eq!(asked("atoken=1"), None);
        assert_eq!(token_of(&none, None), None);
    }

    #[test]
    fn foreign_host_names_are_distinguished_from_local_ones() {
        for local in ["localhost", "LOCALHOST:9379", "127.0.0.1:9379", "[::1]:9379", "10.0.0.1"] {
            assert!(is_local_name(&headers(HOST, local)), "{local}");
        }
        for foreign in ["evil.example", "evil.example:9379", "localhost.evil.example", "", "[x]"] {
            assert!(!is_local_name(&headers(HOST, foreign)), "{foreign}");
        }
        assert!(is_local_name(&HeaderMap::new()), "before HTTP/1.1 there was no such header");
    }
}
