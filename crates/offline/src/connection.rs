//! The running server: options which say where it is, and the connection.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use client::{Address, Client, Value};

/// What a failed step says to the user.
pub type Failure = String;

/// Variables of the environment with the password; the first that is there counts. The second is
/// that of `redis-cli`.
const PASSWORD_VARIABLES: [&str; 2] = ["SHEAFDB_PASSWORD", "REDISCLI_AUTH"];

/// Where a server is, and who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The server.
    pub address: Address,
    /// The user to log in as.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Option<Vec<u8>>,
}

/// The options from which a [`Login`] follows.
#[derive(Debug, Default)]
pub struct LoginOptions {
    host: Option<String>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
}

impl LoginOptions {
    /// Takes an option, whose value is the next argument of `rest`. False if it is none of these.
    pub fn take<'a>(
        &mut self,
        name: &str,
        rest: &mut impl Iterator<Item = &'a Vec<u8>>,
    ) -> Result<bool, Failure> {
        let mut value = || rest.next().ok_or_else(|| format!("{name} needs a value"));
        match name {
            "--host" => self.host = Some(String::from_utf8_lossy(value()?).into_owned()),
            "-p" | "--port" => self.port = Some(port_of(value()?)?),
            "-s" | "--socket" => self.socket = Some(path(value()?)),
            "--user" => self.user = Some(value()?.clone()),
            "--pass" | "--password" => self.password = Some(value()?.clone()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Where the server is. A password may stand in the environment, too.
    pub fn login(self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Login, Failure> {
        let from_variable = || {
            let mut found = PASSWORD_VARIABLES.iter().filter_map(|name| variable(name));
            found.next().map(OsString::into_vec)
        };
        let password = self.password.or_else(from_variable);
        let password = password.filter(|password| !password.is_empty());
        if self.user.is_some() && password.is_none() {
            return Err("--user needs a password".into());
        }
        let host = self.host.as_deref().unwrap_or("127.0.0.1");
        let tcp = || tcp(host, self.port.unwrap_or(6379));
        let address = self.socket.map_or_else(tcp, Address::Unix);
        Ok(Login { address, user: self.user, password })
    }
}

/// A path as it is given.
pub fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn port_of(text: &[u8]) -> Result<u16, Failure> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| format!("'{}' is no port", text.escape_ascii()))
}

fn tcp(host: &str, port: u16) -> Address {
    let is_v6 = host.contains(':') && !host.starts_with('[');
    Address::Tcp(if is_v6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// A connection to a server.
pub struct Asked(pub Client);

impl Asked {
    /// Connects and logs in. Each reply may take as long as `patience`.
    pub fn connect(login: &Login, patience: Duration) -> Result<Self, Failure> {
        let place = match &login.address {
            Address::Tcp(text) => text.clone(),
            Address::Unix(path) => path.display().to_string(),
        };
        let client = Client::connect(&login.address, patience)
            .map_err(|error| format!("no connection to {place}: {error}"))?;
        let mut asked = Self(client);
        if let Some(password) = &login.password {
            let words: Vec<&[u8]> = [b"AUTH".as_slice()]
                .into_iter()
                .chain(login.user.as_deref())
                .chain([password.as_slice()])
                .collect();
            asked.call(&words)?;
        }
        Ok(asked)
    }

    /// The reply, if it is no error.
    pub fn call(&mut self, words: &[&[u8]]) -> Result<Value, Failure> {
        match self.try_call(words)? {
            Value::Error(text) => Err(said(words[0], &text)),
            reply => Ok(reply),
        }
    }

    /// The reply.
    pub fn try_call(&mut self, words: &[&[u8]]) -> Result<Value, Failure> {
        self.0.call(words).map_err(|error| lost(words[0], &error))
    }

    /// The replies of requests which are sent together; none is an error.
    pub fn pipeline(&mut self, requests: &[Vec<&[u8]>]) -> Result<Vec<Value>, Failure> {
        let replies = self.0.pipeline(requests.iter().map(Vec::as_slice));
        let name = requests.first().map_or(&b""[..], |words| words[0]);
        let replies = replies.map_err(|error| lost(name, &error))?;
        for (reply, words) in replies.iter().zip(requests) {
            if let Value::Error(text) = reply {
                return Err(said(words[0], text));
            }
        }
        Ok(replies)
    }

    /// A section of INFO.
    pub fn info(&mut self, section: &str) -> Result<String, Failure> {
        let reply = self.call(&[b"INFO", section.as_bytes()])?;
        Ok(reply.as_str().unwrap_or_default().to_owned())
    }

    /// The value of a setting.
    pub fn setting(&mut self, name: &str) -> Result<Vec<u8>, Failure> {
        let reply = self.call(&[b"CONFIG", b"GET", name.as_bytes()])?;
        let value = reply.as_members().and_then(|members| members.get(1)).and_then(Value::as_bytes);
        let value = value.ok_or_else(|| format!("the server has no setting {name}"))?;
        Ok(value.to_vec())
    }
}

fn lost(command: &[u8], error: &client::Error) -> Failure {
    format!("{}: the connection is lost: {error}", command.escape_ascii())
}

/// What the server answered.
pub fn said(command: &[u8], text: &[u8]) -> Failure {
    format!("the server refuses {}: {}", command.escape_ascii(), String::from_utf8_lossy(text))
}

/// A field of INFO.
pub fn field<'t>(info: &'t str, name: &str) -> Result<&'t str, Failure> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(str::trim_end).ok_or_else(|| format!("INFO has no {name}"))
}
