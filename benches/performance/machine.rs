//! Processor time and memory of processes, as Linux reports them (proc(5)).

use std::collections::BTreeMap;
use std::fs;

/// A clock tick of proc(5), in seconds.
const TICK: f64 = 0.01;

/// Processor time in seconds of a process and its descendants, including ended ones.
pub fn cpu(root: u32) -> f64 {
    let all = processes();
    let mut family = vec![root];
    let mut seconds = 0.0;
    while let Some(pid) = family.pop() {
        seconds += all.get(&pid).map_or(0.0, |(_, seconds)| *seconds);
        family.extend(
            all.iter()
                .filter(|(_, (parent, _))| *parent == pid)
                .map(|(pid, _)| pid),
        );
    }
    seconds
}

/// Processor time in seconds of this process and its ended children, including `wrk`.
pub fn own_cpu() -> f64 {
    processes()[&std::process::id()].1
}

/// Parents and processor time, by process id.
fn processes() -> BTreeMap<u32, (u32, f64)> {
    let entries = fs::read_dir("/proc")
        .expect("Linux tells of its processes")
        .flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: f64 = fields
            .get(11..15)?
            .iter()
            .filter_map(|ticks| ticks.parse::<f64>().ok())
            .sum();
        Some((pid, (fields[1].parse().ok()?, ticks * TICK)))
    })
    .collect()
}

/// Busy seconds and all seconds of the machine's processors.
pub fn busy() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/stat").expect("Linux tells of its processors");
    let line = stat.lines().next().unwrap_or_default().split_whitespace();
    let fields: Vec<f64> = line
        .skip(1)
        .take(8)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    let all: f64 = fields.iter().sum();
    ((all - fields[3] - fields[4]) * TICK, all * TICK)
}

/// Resident and proportional memory of a process in MiB.
pub fn memory(pid: u32) -> (f64, f64) {
    let text =
        fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the process is there");
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kib.expect("Linux tells it") / 1024.0
    };
    (of("Rss:"), of("Pss:"))
}

/// The processor's name and how many of it there are.
pub fn processors() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut names = text.lines().filter(|line| line.starts_with("model name"));
    let name = names
        .next()
        .and_then(|line| line.split_once(": "))
        .map_or("a processor", |(_, name)| name);
    format!(
        "{} × {name}",
        std::thread::available_parallelism().map_or(1, usize::from)
    )
}
