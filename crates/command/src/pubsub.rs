//! Publishing and subscribing: the arguments. Who subscribes, and how messages reach them, is the
//! server's.

use resp::Args;

use crate::error::Error;
use crate::ops::{PubSubOp, ServerOp, SessionOp, Subject};
use crate::spec::KeyRuns;

/// `SUBSCRIBE channel [channel ...]`.
pub fn subscribe(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Subscribe(Subject::Channel))
}

/// `SSUBSCRIBE shardchannel [shardchannel ...]`.
pub fn ssubscribe(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Subscribe(Subject::Shard))
}

/// `PSUBSCRIBE pattern [pattern ...]`.
pub fn psubscribe(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Subscribe(Subject::Pattern))
}

/// `UNSUBSCRIBE [channel [channel ...]]`.
pub fn unsubscribe(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Unsubscribe(Subject::Channel))
}

/// `SUNSUBSCRIBE [shardchannel [shardchannel ...]]`.
pub fn sunsubscribe(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Unsubscribe(Subject::Shard))
}

/// `PUNSUBSCRIBE [pattern [pattern ...]]`.
pub fn punsubscribe(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Unsubscribe(Subject::Pattern))
}

/// `PUBLISH channel message`.
pub fn publish(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Publish(Subject::Channel))
}

/// `SPUBLISH shardchannel message`.
pub fn spublish(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Publish(Subject::Shard))
}

/// `PUBSUB CHANNELS [pattern]`.
pub fn channels(args: Args<'_>) -> Result<ServerOp, Error> {
    names(args, Subject::Channel)
}

/// `PUBSUB SHARDCHANNELS [pattern]`.
pub fn shard_channels(args: Args<'_>) -> Result<ServerOp, Error> {
    names(args, Subject::Shard)
}

fn names(args: Args<'_>, subject: Subject) -> Result<ServerOp, Error> {
    if args.len() > 3 {
        return Err(Error::subcommand_syntax("pubsub", args.get(1)));
    }
    let pattern = args.try_get(2).map(Into::into);
    Ok(ServerOp::PubSub(PubSubOp::Channels(subject, pattern)))
}

/// `PUBSUB NUMSUB [channel ...]`.
pub fn numsub(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(counts(args, Subject::Channel))
}

/// `PUBSUB SHARDNUMSUB [shardchannel ...]`.
pub fn shard_numsub(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(counts(args, Subject::Shard))
}

fn counts(args: Args<'_>, subject: Subject) -> ServerOp {
    let names = (2..args.len()).map(|at| args.get(at).into()).collect();
    ServerOp::PubSub(PubSubOp::Counts(subject, names))
}

/// `PUBSUB NUMPAT`.
pub fn numpat(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::PubSub(PubSubOp::Patterns))
}

/// A shard channel is no key: nothing is locked for it.
pub fn no_keys(_: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(KeyRuns::NONE)
}
