//! The arguments of searches.

use base::double;
use base::num::parse_i64;
use resp::Args;
use value::geo::{Area, Place, Polygon, Shape};
use value::zset::View;

use super::text::{place, unit};
use crate::error::{Error, GeoExactlyOne, GeoStoreWith, NeedNumeric};
use crate::parse::{integer, is};
use crate::spec::KeyRuns;

/// Which command it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// GEOSEARCH, and with a destination in front GEOSEARCHSTORE.
    Search { is_store: bool },
    /// GEORADIUS, and GEORADIUS_RO, which stores nothing.
    Radius { may_store: bool },
    /// GEORADIUSBYMEMBER, and GEORADIUSBYMEMBER_RO.
    ByMember { may_store: bool },
}

impl Form {
    /// Whether `STORE` and `STOREDIST` may be said.
    fn may_store(self) -> bool {
        match self {
            Form::Radius { may_store } | Form::ByMember { may_store } => may_store,
            Form::Search { .. } => false,
        }
    }

    /// Where the options begin, if the source's key is argument `source`.
    fn options_at(self, source: usize) -> usize {
        match self {
            Form::Search { .. } => source + 1,
            Form::Radius { .. } => source + 5,
            Form::ByMember { .. } => source + 4,
        }
    }
}

/// The keys of GEORADIUS: the source, which is looked at before the options are read, and where to
/// store.
pub fn georadius_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(keys(args, Form::Radius { may_store: true }))
}

/// The keys of GEORADIUSBYMEMBER, as [`georadius_keys`].
pub fn georadiusbymember_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(keys(args, Form::ByMember { may_store: true }))
}

fn keys(args: Args<'_>, form: Form) -> KeyRuns {
    let mut parts = Parts::default();
    let read = parts.read(args, form.options_at(1), form, None);
    KeyRuns::of(1..2).and_one(parts.store.filter(|_| read.is_ok()), 1)
}

/// Nearest or farthest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// What is searched.
pub(super) enum Region {
    Area(Area),
    Polygon(Polygon),
}

impl Region {
    /// From where distances are measured.
    pub fn center(&self) -> Place {
        match self {
            Region::Area(area) => area.center,
            Region::Polygon(polygon) => polygon.center(),
        }
    }

    /// What it costs to see whether a place is inside, in tests of a circle: few sides cost as
    /// much as that.
    pub fn cost(&self) -> u64 {
        match self {
            Region::Area(_) => 1,
            Region::Polygon(polygon) => 1 + polygon.sides() as u64 / 64,
        }
    }
}

/// All arguments.
pub(super) struct Query {
    pub region: Region,
    /// Metres of the unit.
    pub metres: f64,
    pub order: Option<Order>,
    pub count: Option<usize>,
    /// The first ones found will do.
    pub any: bool,
    pub with_distance: bool,
    pub with_hash: bool,
    pub with_place: bool,
    /// The argument that is the destination.
    pub store: Option<usize>,
    /// The distances are stored, not the geohashes.
    pub store_distance: bool,
}

/// What is known while the arguments are read.
#[derive(Default)]
struct Parts {
    center: Option<Place>,
    /// The middle is a member's place; of two of a kind the last one counts.
    is_member: Option<bool>,
    /// The shape and the metres of its unit.
    shape: Option<(Shape, f64)>,
    /// Instead of a middle and a shape.
    polygon: Option<Polygon>,
    order: Option<Order>,
    count: Option<usize>,
    any: bool,
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
    store: Option<usize>,
    store_distance: bool,
}

fn length(text: &[u8], what: &'static str) -> Result<f64, Error> {
    double::parse(text).ok_or_else(|| NeedNumeric { what }.into())
}

/// A radius with its unit.
fn circle(radius: &[u8], word: &[u8]) -> Result<(Shape, f64), Error> {
    let radius = length(radius, "radius")?;
    if radius < 0.0 {
        return Err(Error::RadiusNegative);
    }
    let metres = unit(word)?;
    Ok((Shape::Circle(radius * metres), metres))
}

/// A width and a height with their unit.
fn rectangle(width: &[u8], height: &[u8], word: &[u8]) -> Result<(Shape, f64), Error> {
    let (width, height) = (length(width, "width")?, length(height, "height")?);
    if width < 0.0 || height < 0.0 {
        return Err(Error::BoxNegative);
    }
    let metres = unit(word)?;
    Ok((Shape::Box { width: width * metres, height: height * metres }, metres))
}

/// `BYPOLYGON count lon lat ...`, of which `texts` begins behind the word; and how many arguments
/// it takes. The checks and their words are those of Valkey 9.1, which says the same where the
/// count is too large.
fn polygon(mut texts: Args<'_>) -> Result<(Polygon, usize), Error> {
    let count = texts.iter().next().and_then(parse_i64);
    let count = count.and_then(|count| i32::try_from(count).ok());
    let count = count.ok_or(Error::VerticesNotInteger)?;
    texts = texts.from(1);
    let count = usize::try_from(count).unwrap_or(0);
    if count < 3 || count > texts.len() / 2 {
        return Err(Error::VerticesTooFew);
    }
    let mut texts = texts.iter();
    let mut text = || texts.next().expect("they were counted");
    let vertices: Result<Vec<Place>, Error> = (0..count).map(|_| place(text(), text())).collect();
    Ok((Polygon::new(&vertices?), 1 + 2 * count))
}

/// Where a member is. A key that does not exist has all members, for what is found in it is nothing
/// anyway.
fn place_of(zset: Option<View<'_>>, member: &[u8]) -> Result<Place, Error> {
    let Some(zset) = zset else { return Ok(Place { lon: 0.0, lat: 0.0 }) };
    let score = zset.score(member);
    score.map(Place::of_score).ok_or(Error::NoSuchPlace)
}

impl Query {
    /// True if somebody asks how far a place is.
    pub fn needs_distance(&self) -> bool {
        self.order.is_some() || self.with_distance || self.store_distance
    }

    /// So many places that were found are enough.
    pub fn enough(&self) -> usize {
        if self.any { self.count.unwrap_or(usize::MAX) } else { usize::MAX }
    }

    /// Reads the arguments from the one behind the source's key on; members are looked up in the
    /// source.
    pub fn parse(
        args: Args<'_>,
        form: Form,
        source: usize,
        zset: Option<View<'_>>,
    ) -> Result<Self, Error> {
        let mut parts = Parts::default();
        let from = source + 1;
        match form {
            Form::Search { .. } => {}
            Form::Radius { .. } => {
                parts.center = Some(place(args.get(from), args.get(from + 1))?);
                parts.shape = Some(circle(args.get(from + 2), args.get(from + 3))?);
            }
            // Of a key that does not exist the radius is not even looked at.
            Form::ByMember { .. } if zset.is_none() => {
                parts.center = Some(place_of(zset, b"")?);
                parts.shape = Some((Shape::Circle(0.0), 1.0));
            }
            Form::ByMember { .. } => {
                parts.center = Some(place_of(zset, args.get(from))?);
                parts.shape = Some(circle(args.get(from + 1), args.get(from + 2))?);
            }
        }
        parts.read(args, form.options_at(source), form, zset)?;
        parts.query(form, args.get(0))
    }
}

impl Parts {
    fn read(
        &mut self,
        args: Args<'_>,
        mut at: usize,
        form: Form,
        zset: Option<View<'_>>,
    ) -> Result<(), Error> {
        let is_search = matches!(form, Form::Search { .. });
        while let Some(word) = args.try_get(at) {
            let left = args.len() - at - 1;
            if is(word, "WITHDIST") {
                self.with_distance = true;
            } else if is(word, "WITHHASH") {
                self.with_hash = true;
            } else if is(word, "WITHCOORD") {
                self.with_place = true;
            } else if is(word, "ANY") {
                self.any = true;
            } else if is(word, "ASC") {
                self.order = Some(Order::Ascending);
            } else if is(word, "DESC") {
                self.order = Some(Order::Descending);
            } else if is(word, "COUNT") && left >= 1 {
                let count = integer(args.get(at + 1))?;
                if count <= 0 {
                    return Err(Error::CountAboveZero);
                }
                self.count = Some(count as usize);
                at += 1;
            } else if !is_search {
                at += self.store_option(args, at, form)?;
            } else if form == (Form::Search { is_store: true }) && is(word, "STOREDIST") {
                self.store_distance = true;
            } else {
                at += self.search_option(args, word, at, left, zset)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// `STORE key`, `STOREDIST key`; how many arguments further it ends. The last of them counts.
    fn store_option(&mut self, args: Args<'_>, at: usize, form: Form) -> Result<usize, Error> {
        let is_distance = is(args.get(at), "STOREDIST");
        let is_store = is_distance || is(args.get(at), "STORE");
        if !is_store || !form.may_store() || at + 1 >= args.len() {
            return Err(Error::Syntax);
        }
        self.store = Some(at + 1);
        self.store_distance = is_distance;
        Ok(1)
    }

    /// What is searched from where; how many arguments further it ends.
    fn search_option(
        &mut self,
        args: Args<'_>,
        word: &[u8],
        at: usize,
        left: usize,
        zset: Option<View<'_>>,
    ) -> Result<usize, Error> {
        let arg = |n: usize| args.get(at + n);
        let is_circle = self.shape.map(|(shape, _)| matches!(shape, Shape::Circle(_)));
        if is(word, "BYPOLYGON") {
            // It has its own middle.
            if left < 2 || self.is_member.is_some() || self.shape.is_some() {
                return Err(Error::Syntax);
            }
            let (polygon, taken) = polygon(args.from(at + 1))?;
            self.polygon = Some(polygon);
            return Ok(taken);
        }
        if self.polygon.is_some() {
            return Err(Error::Syntax);
        }
        if is(word, "FROMMEMBER") && left >= 1 && self.is_member != Some(false) {
            self.is_member = Some(true);
            self.center = Some(place_of(zset, arg(1))?);
            Ok(1)
        } else if is(word, "FROMLONLAT") && left >= 2 && self.is_member != Some(true) {
            self.is_member = Some(false);
            self.center = Some(place(arg(1), arg(2))?);
            Ok(2)
        } else if is(word, "BYRADIUS") && left >= 2 && is_circle != Some(false) {
            self.shape = Some(circle(arg(1), arg(2))?);
            Ok(2)
        } else if is(word, "BYBOX") && left >= 3 && is_circle != Some(true) {
            self.shape = Some(rectangle(arg(1), arg(2), arg(3))?);
            Ok(3)
        } else {
            Err(Error::Syntax)
        }
    }

    fn query(self, form: Form, name: &[u8]) -> Result<Query, Error> {
        let (with, is_search) = (
            self.with_distance || self.with_hash || self.with_place,
            matches!(form, Form::Search { .. }),
        );
        let is_store = form == (Form::Search { is_store: true });
        if with && (is_store || self.store.is_some()) {
            let what = if is_search { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(GeoStoreWith { what }.into());
        }
        let missing = |what| GeoExactlyOne { what, command: String::from_utf8_lossy(name).into() };
        let (region, metres) = if let Some(polygon) = self.polygon {
            (Region::Polygon(polygon), 1.0)
        } else {
            let center = self.center.ok_or_else(|| missing("FROMMEMBER or FROMLONLAT"))?;
            let (shape, metres) = self.shape.ok_or_else(|| missing("BYRADIUS and BYBOX"))?;
            (Region::Area(Area { center, shape }), metres)
        };
        if self.any && self.count.is_none() {
            return Err(Error::AnyWithoutCount);
        }
        // A count without an order asks for the nearest.
        let nearest = self.order.is_none() && self.count.is_some() && !self.any;
        Ok(Query {
            region,
            metres,
            order: if nearest { Some(Order::Ascending) } else { self.order },
            count: self.count,
            any: self.any,
            with_distance: self.with_distance,
            with_hash: self.with_hash,
            with_place: self.with_place,
            store: if is_store { Some(1) } else { self.store },
            store_distance: self.store_distance,
        })
    }
}
