//! The image: a Dockerfile read as hadolint reads one, as far as this one goes.

use super::text;
use std::collections::BTreeSet;

/// One instruction: its word and the rest, continued lines joined.
type Instruction = (String, String);

fn instructions(dockerfile: &str) -> Vec<Instruction> {
    let mut joined = Vec::new();
    let mut open = String::new();
    for line in dockerfile.lines().filter(|line| !line.trim_start().starts_with('#')) {
        open.push_str(line.trim_end().trim_end_matches('\\'));
        if !line.trim_end().ends_with('\\') {
            joined.push(std::mem::take(&mut open));
        }
    }
    let lines = joined.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            (word.to_ascii_uppercase(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// What is wrong with it, by the names of hadolint's rules where there is one.
fn faults(dockerfile: &str) -> Vec<String> {
    let all = instructions(dockerfile);
    let (mut faults, mut stages) = (BTreeSet::new(), BTreeSet::new());
    for (word, rest) in &all {
        let words: Vec<&str> = rest.split(' ').collect();
        match word.as_str() {
            "FROM" => {
                let image = words[0];
                let tag = image.rsplit('/').next().and_then(|name| name.split_once(':')).map(|(_, tag)| tag);
                match tag {
                    None if image != "scratch" => drop(faults.insert("DL3006 an image without a tag")),
                    Some("latest") => drop(faults.insert("DL3007 the tag latest")),
                    Some(tag) if !tag.contains('.') => drop(faults.insert("a tag that moves")),
                    _ => {}
                }
                if let ["AS" | "as", name] = words[1..] {
                    stages.insert(name.to_owned());
                }
            }
            "ADD" => drop(faults.insert("DL3020 ADD in place of COPY")),
            "MAINTAINER" => drop(faults.insert("DL4000 MAINTAINER")),
            "WORKDIR" if !rest.starts_with('/') => drop(faults.insert("DL3000 a relative WORKDIR")),
            "ENTRYPOINT" | "CMD" if !rest.starts_with('[') => drop(faults.insert("DL3025 not in exec form")),
            "ARG" | "ENV" if ["TOKEN", "PASSWORD", "SECRET"].iter().any(|s| rest.to_uppercase().contains(s)) => {
                faults.insert("a secret in the image's history");
            }
            "COPY" => {
                let from = words.iter().find_map(|word| word.strip_prefix("--from="));
                if from.is_some_and(|stage| !stages.contains(stage)) {
                    faults.insert("DL3022 COPY from no stage");
                }
            }
            "RUN" => {
                if rest.contains("sudo ") {
                    faults.insert("DL3004 sudo");
                }
                if rest.contains(" | ") && !rest.contains("pipefail") {
                    faults.insert("DL4006 a pipe whose failure is lost");
                }
                if rest.contains("; ") && !rest.contains("set -e") {
                    faults.insert("a command whose failure is lost");
                }
                if rest.contains("cargo build") && !rest.contains("--locked") {
                    faults.insert("versions that are not those of Cargo.lock");
                }
            }
            _ => {}
        }
    }
    let last = all.iter().rposition(|(word, _)| word == "FROM").map_or(&all[..], |at| &all[at..]);
    let base = last.first().map(|(_, rest)| rest.as_str()).unwrap_or_default();
    if base != "scratch" && !base.contains("distroless") {
        faults.insert("an image with a system in it");
    }
    if last.iter().any(|(word, _)| word == "RUN") {
        faults.insert("something runs in the image that ships");
    }
    let user =
        last.iter().rfind(|(word, _)| word == "USER").map(|(_, user)| user.split(':').next().unwrap_or_default());
    match user.map(str::parse::<u32>) {
        Some(Ok(uid)) if uid > 0 => {}
        Some(Err(_)) => drop(faults.insert("a user that runAsNonRoot cannot judge")),
        Some(Ok(_)) | None => drop(faults.insert("DL3002 root")),
    }
    faults.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_image_keeps_the_rules() {
    assert_eq!(faults(&text("Dockerfile")), [""; 0]);
}

#[test]
fn the_rules_find_what_they_are_for() {
    let bad = "FROM ubuntu\nFROM rust:latest AS b\nFROM rust:1\nMAINTAINER me\nENV API_TOKEN=x\nWORKDIR src\nADD . .\n\
        COPY --from=nowhere /x /x\nRUN sudo curl x | sh\nRUN cargo build; \\\n  # a remark\n  strip x\nCMD run\n";
    let found = faults(bad).join("\n");
    for rule in [
        "DL3000",
        "DL3002",
        "DL3004",
        "DL3006",
        "DL3007",
        "DL3020",
        "DL3022",
        "DL3025",
        "DL4000",
        "DL4006",
        "secret",
        "that moves",
        "Cargo.lock",
        "system",
        "ships",
        "a command whose",
    ] {
        assert!(found.contains(rule), "{rule} is not found in\n{found}");
    }
    assert_eq!(faults("FROM scratch\nUSER nobody\n"), ["a user that runAsNonRoot cannot judge"]);
}

#[test]
fn it_is_built_without_the_sandbox_by_a_compiler_that_can() {
    let all = instructions(&text("Dockerfile"));
    let build = all.iter().find(|(_, rest)| rest.contains("cargo build")).map(|(_, rest)| rest.as_str());
    let build = build.expect("a build");
    assert!(build.contains("--no-default-features --features shell") && build.contains("--release"), "{build}");
    assert!(build.contains("-unknown-linux-musl"), "scratch has no C library: {build}");
    let image = all.iter().find_map(|(word, rest)| (word == "FROM").then(|| rest.strip_prefix("rust:")).flatten());
    let compiler = version(image.expect("an image of Rust"));
    let needed = env!("CARGO_PKG_RUST_VERSION");
    assert!(compiler >= version(needed), "{compiler:?}, needed is {needed}");
}

fn version(text: &str) -> Vec<u32> {
    text.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}

/// Cargo refuses a manifest that names a target whose file is missing.
#[test]
fn the_build_gets_every_file_that_the_manifest_names() {
    let ignored = text(".dockerignore");
    let kept: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert_eq!(ignored.lines().find(|line| !line.starts_with('#')), Some("*"), "what is not named is not sent");
    let named = |section: &str, directory: &str| {
        let manifest = text("Cargo.toml");
        let blocks =
            manifest.split("\n[").filter(|block| block.starts_with(&format!("[{section}]]"))).map(str::to_owned);
        let name = |block: String| {
            block.lines().find_map(|line| line.strip_prefix("name = ")).map(|name| name.trim_matches('"').to_owned())
        };
        blocks.filter_map(name).map(|name| format!("{directory}/{name}.rs")).collect::<Vec<_>>()
    };
    let targets = [named("test", "tests"), named("bench", "benches")].concat();
    assert!(targets.len() > 2, "{targets:?}");
    for file in targets.iter().map(String::as_str).chain(["Cargo.lock", "src/main.rs"]) {
        let sent = kept.iter().any(|kept| file == *kept || file.starts_with(&format!("{kept}/")));
        assert!(sent, "{file} is not sent to the build");
    }
    kept.iter().for_each(|kept| assert!(std::path::Path::new(kept).exists(), "{kept} does not exist"));
}
