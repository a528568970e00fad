//! Every setting the server knows: one table, its values, the redis.conf and argv syntax, and
//! CONFIG GET, SET and REWRITE over it. Pure code: it reads files only to load them.
