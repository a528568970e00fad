//! Measured values into a stream, each once and in order, whatever happens to the connection:
//! `cargo run -p sheafdb-producer --example ingest_producer -- 127.0.0.1:9100 [COUNT]`.

use sheafdb_producer::{Error, Options, Producer, SinkKind};

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "127.0.0.1:9100".into());
    let count: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(1000);
    let mut options = Options::new(address, "example-rust");
    (options.sink, options.key) = (SinkKind::Stream, b"example:ingest".to_vec());
    let producer = Producer::connect(options)?;
    // A program that was killed goes on where the server says: numbers never start again.
    for n in producer.last() + 1..=count {
        producer.send(format!("value {n}").as_bytes())?; // waits if too much is unacknowledged
    }
    producer.close()?; // all of them are in, or the error says why not
    println!("{} are in the stream", producer.acknowledged());
    Ok(())
}
