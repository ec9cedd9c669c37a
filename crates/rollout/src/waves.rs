//! Which composite resources are moved together: `1,10%,50%,100%`, or by their labels. Pure.

use std::fmt;
use transom_object::labels::{Labels, Selector};

/// The waves of a rollout. The last one has everything that is left.
#[derive(Clone, Debug)]
pub(crate) struct Waves(Vec<Wave>);

#[derive(Clone, Debug)]
enum Wave {
    /// As many as there are up to this number in total.
    Count(usize),
    /// As many as there are up to this part of all.
    Percent(usize),
    /// All that have these labels.
    Labelled(String, Selector),
}

impl Waves {
    /// Reads waves that are separated by commas: a number, a percentage, or a label such as `ring=canary`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let waves: Vec<Wave> =
            text.split(',').map(|wave| Wave::parse(wave.trim())).collect::<Result<_, _>>()?;
        match waves.last() {
            Some(Wave::Percent(100)) => Ok(Self(waves)),
            _ => Err(format!(
                "the last wave must be 100%, not {:?}: choose fewer composite resources by -l or --namespace",
                waves.last().map(ToString::to_string).unwrap_or_default()
            )),
        }
    }

    /// The wave, from zero, of each of some composite resources with these labels. Numbers and percentages count from the
    /// start of the list, and include what earlier waves have. No wave is empty.
    pub(crate) fn assign(&self, labels: &[Labels]) -> Vec<usize> {
        let total = labels.len();
        let mut waves: Vec<Option<usize>> = vec![None; total];
        let mut next = 0;
        for wave in &self.0 {
            let assigned = waves.iter().filter(|wave| wave.is_some()).count();
            let free = waves.iter_mut().zip(labels).filter(|(wave, _)| wave.is_none());
            let mut any = false;
            let mut put = |wave: &mut Option<usize>| {
                *wave = Some(next);
                any = true;
            };
            match wave.total(total) {
                Some(up_to) => {
                    free.take(up_to.saturating_sub(assigned)).for_each(|(wave, _)| put(wave));
                }
                None => {
                    let has = |labels: &Labels| matches!(wave, Wave::Labelled(_, s) if s.matches(labels));
                    free.filter(|(_, labels)| has(labels)).for_each(|(wave, _)| put(wave));
                }
            }
            next += usize::from(any);
        }
        // The last wave is 100%, so each has one.
        waves.into_iter().map(|wave| wave.unwrap_or(next)).collect()
    }
}

impl fmt::Display for Waves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waves: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&waves.join(","))
    }
}

impl Wave {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?} is not a wave: write a number, a percentage, or a label such as ring=canary")
        };
        if let Some(percent) = text.strip_suffix('%') {
            let percent: usize = percent.parse().map_err(|_| wrong())?;
            return match percent {
                1..=100 => Ok(Self::Percent(percent)),
                _ => Err(format!("{text:?} is not a wave: a percentage is between 1% and 100%")),
            };
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit()) {
            let count = text.parse().map_err(|_| wrong())?;
            return if count > 0 { Ok(Self::Count(count)) } else { Err(wrong()) };
        }
        match Selector::parse(text) {
            Ok(selector) if text.contains('=') => Ok(Self::Labelled(text.to_owned(), selector)),
            Ok(_) => Err(wrong()),
            Err(e) => Err(format!("{text:?} is not a wave: {e}")),
        }
    }

    /// How many there are at the end of the wave, if that does not depend on labels. A part of one is one.
    fn total(&self, of: usize) -> Option<usize> {
        match self {
            Self::Count(count) => Some(*count),
            Self::Percent(percent) => Some((of * percent).div_ceil(100)),
            Self::Labelled(..) => None,
        }
    }
}

impl fmt::Display for Wave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Labelled(text, _) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(waves: &str, labels: &[Labels]) -> Vec<usize> {
        let assigned = Waves::parse(waves).unwrap().assign(labels);
        let last = assigned.iter().max().map_or(0, |last| last + 1);
        (0..last).map(|wave| assigned.iter().filter(|w| **w == wave).count()).collect()
    }

    #[test]
    fn numbers_and_percentages_include_earlier_waves() {
        for (waves, of, expected) in [
            ("1,10%,50%,100%", 20, &[1, 1, 8, 10][..]),
            ("1,10%,50%,100%", 1, &[1]),
            ("1,10%,50%,100%", 5, &[1, 2, 2]),
            ("1,10%,50%,100%", 0, &[]),
            ("10%, 100%", 3, &[1, 2]),
            ("100%", 7, &[7]),
            ("5,2,100%", 6, &[5, 1]),
            ("50,100%", 6, &[6]),
            ("1%,100%", 1000, &[10, 990]),
        ] {
            assert_eq!(sizes(waves, &vec![Labels::new(); of]), expected, "{waves} of {of}");
        }
    }

    #[test]
    fn labels_choose_whom_a_wave_has() {
        let ring = |n: usize| Labels::from([("ring".to_owned(), n.to_string())]);
        let labels: Vec<Labels> = (0..9).map(|n| ring(n % 3)).collect();
        let waves = Waves::parse("ring=2,ring=0,100%").unwrap();
        assert_eq!(waves.assign(&labels), [1, 2, 0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(sizes("ring=7,ring!=1,100%", &labels), [6, 3], "an empty wave is left out");
        assert_eq!(sizes("ring=0,50%,100%", &labels), [3, 2, 4]);
        assert_eq!(waves.to_string(), "ring=2,ring=0,100%");
    }

    #[test]
    fn every_one_has_a_wave_and_waves_have_no_gaps() {
        for of in 0..60 {
            for (a, b) in (1..=of + 2).flat_map(|a| [(a, 1), (a, 30), (a, 99)]) {
                let assigned =
                    Waves::parse(&format!("{a},{b}%,100%")).unwrap().assign(&vec![Labels::new(); of]);
                assert_eq!(assigned.len(), of);
                assert!(assigned.is_sorted(), "{assigned:?}");
                assert!(assigned.first().is_none_or(|first| *first == 0));
                assert!(assigned.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{assigned:?}");
            }
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (waves, words) in [
            ("", "is not a wave"),
            ("0,100%", "is not a wave"),
            ("101%", "between 1% and 100%"),
            ("0%,100%", "between 1% and 100%"),
            ("1,50%", "the last wave must be 100%, not \"50%\""),
            ("ring=canary", "the last wave must be 100%"),
            ("ring,100%", "is not a wave"),
            ("a b=c,100%", "is not a wave"),
        ] {
            let error = Waves::parse(waves).unwrap_err();
            assert!(error.contains(words), "{waves}: {error}");
        }
    }
}
