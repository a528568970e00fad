//! What the wall clock of a worker may have shown, when it was stepped.

/// The steps of a wall clock: since when, and by how much in all. Nanoseconds.
#[derive(Debug)]
pub struct Wall {
    steps: Vec<(u64, i64)>,
}

impl Default for Wall {
    fn default() -> Self {
        Self { steps: vec![(0, 0)] }
    }
}

impl Wall {
    /// The clock steps at `at_ns`.
    pub fn step(&mut self, at_ns: u64, by_ns: i64) {
        let all = self.steps.last().map_or(0, |(_, all)| *all) + by_ns;
        self.steps.push((at_ns, all));
    }

    /// From `at_ns` on the clock is one that was never stepped.
    pub fn reset(&mut self, at_ns: u64) {
        self.steps.push((at_ns, 0));
    }

    /// The earliest and the latest that a worker's clock showed between two times of the
    /// simulation, if the worker notices a step at a time so many nanoseconds later at the latest.
    /// Nanoseconds from an arbitrary beginning.
    pub fn between(&self, from_ns: u64, to_ns: u64, late_ns: impl Fn(u64) -> u64) -> (i64, i64) {
        let mut range: Option<(i64, i64)> = None;
        for (at, (since, all)) in self.steps.iter().enumerate() {
            let next = self.steps.get(at + 1);
            let noticed = next.map_or(u64::MAX, |(next, _)| next.saturating_add(late_ns(*next)));
            let (first, last) = (from_ns.max(*since), to_ns.min(noticed));
            if first <= last {
                let (least, most) = range.unwrap_or((i64::MAX, i64::MIN));
                range = Some((least.min(first as i64 + all), most.max(last as i64 + all)));
            }
        }
        range.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock which steps back by 130 at 315 still shows 326 at 326, to whoever notices the step
    /// 70 later; at 418 it shows 288.
    #[test]
    fn before_it_notices_a_step_a_worker_shows_the_time_without_it() {
        let mut wall = Wall::default();
        wall.step(315, -130);
        assert_eq!(wall.between(418, 419, |_| 70), (288, 289));
        assert_eq!(
            wall.between(279, 419, |_| 70),
            (185, 385),
            "until 385 the step may be unnoticed"
        );
        assert_eq!(wall.between(314, 314, |_| 70), (314, 314));
        assert_eq!(wall.between(320, 320, |_| 70), (190, 320));
    }

    #[test]
    fn steps_add_up_until_the_clock_is_another_one() {
        let mut wall = Wall::default();
        wall.step(100, 10);
        wall.step(200, 5);
        assert_eq!(wall.between(300, 300, |_| 0), (315, 315));
        wall.reset(400);
        assert_eq!(wall.between(500, 500, |_| 0), (500, 500));
    }
}
