//! A plot as CSV (RFC 4180): one line per point.

use super::document::Plot;

/// The points of a plot: `series`, x and y under their labels, and the lowest and highest
/// repetition where there are any. Figures are written so that they read back exactly.
pub fn csv(plot: &Plot) -> String {
    let spread = plot.series.iter().any(|series| !series.spread.is_empty());
    let mut header = vec!["series".to_owned(), plot.x_label.clone(), plot.y_label.clone()];
    if spread {
        header.extend(["lowest".to_owned(), "highest".to_owned()]);
    }
    let mut text = line(&header);
    for series in &plot.series {
        for (at, (x, y)) in series.points.iter().enumerate() {
            let category = plot.categories.get(*x as usize).filter(|_| *x >= 0.0);
            let x = category.cloned().unwrap_or_else(|| x.to_string());
            let mut cells = vec![series.name.clone(), x, y.to_string()];
            if spread {
                let ends = series.spread.get(at);
                cells.push(ends.map(|e| e.0.to_string()).unwrap_or_default());
                cells.push(ends.map(|e| e.1.to_string()).unwrap_or_default());
            }
            text.push_str(&line(&cells));
        }
    }
    text
}

fn line(cells: &[String]) -> String {
    let quoted: Vec<String> = cells.iter().map(|cell| quote(cell)).collect();
    quoted.join(",") + "\r\n"
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Kind, Series};

    #[test]
    fn a_point_is_one_line() {
        let plot = Plot::new(Kind::Line, "t", "connections", "requests/s, thousands")
            .with(Series::new("a \"b\"", vec![(1.0, 0.1), (2.0, 1e9)]))
            .with(Series::repeated("c", &[(5.0, vec![3.0, 1.0, 2.0])]));
        let want = "series,connections,\"requests/s, thousands\",lowest,highest\r\n\
                    \"a \"\"b\"\"\",1,0.1,,\r\n\"a \"\"b\"\"\",2,1000000000,,\r\nc,5,2,1,3\r\n";
        assert_eq!(csv(&plot), want);
    }

    #[test]
    fn categories_are_written_by_name() {
        let mut plot = Plot::new(Kind::Bar, "t", "target", "polls");
        plot.categories = vec!["x".to_owned(), "y".to_owned()];
        let plot = plot.with(Series::new("s", vec![(0.0, 4.0), (1.0, 5.0)]));
        assert_eq!(csv(&plot), "series,target,polls\r\ns,x,4\r\ns,y,5\r\n");
    }
}
