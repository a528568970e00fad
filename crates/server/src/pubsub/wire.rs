//! A message as subscribers get it, and as EXEC keeps it until its changes are committed.

use crate::pubsub::inbox::Text;
use crate::pubsub::names::Name;
use crate::sessions::output::Hold;
use command::ops::Subject;
use driver::ConnId;
use resp::{OutBuf, OwnedRequest, Proto, Reply};

/// Messages as a client gets them, and what must have happened before they may leave.
pub(crate) type Told = (OutBuf, Hold);

/// What EXEC has published, to be sent when its changes are committed.
pub(crate) struct Announcement {
    /// A channel or a shard channel.
    pub subject: Subject,
    /// Its name.
    pub channel: Name,
    /// The request, which has the message.
    pub args: OwnedRequest,
    /// When PUBLISH ran.
    pub epoch: u64,
    /// The publisher.
    pub conn: ConnId,
}

/// Writes a message as subscribers of the channel get it, or those of a pattern.
pub(crate) fn write_message(
    out: &mut OutBuf,
    proto: Proto,
    (subject, pattern): (Subject, Option<&[u8]>),
    channel: &[u8],
    text: &Text,
) {
    let mut reply = Reply::new(out, proto);
    reply.push(3 + usize::from(pattern.is_some()));
    reply.bulk(match subject {
        Subject::Channel => b"message",
        Subject::Shard => b"smessage",
        Subject::Pattern => b"pmessage",
    });
    if let Some(pattern) = pattern {
        reply.bulk(pattern);
    }
    reply.bulk(channel);
    match text {
        Text::Short(bytes) => reply.bulk(bytes),
        Text::Long(blob) => reply.bulk_blob(blob),
    }
}
