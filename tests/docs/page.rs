//! A page of the documents: its fenced blocks, which of them are run, and what they are to show.

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of its opening fence, from 1.
    pub(crate) line: usize,
    /// What stands behind the fence: the language, and what else is to be known.
    pub(crate) info: String,
    /// What is in it.
    pub(crate) text: String,
}

/// Commands of a page, to be run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The commands.
    pub(crate) commands: Block,
    /// The exit code that they are to end with.
    pub(crate) exit: i32,
    /// What a reader is told they print.
    pub(crate) shown: Option<Block>,
}

/// Languages of commands that a shell could run. Only `sh` is run.
const SHELLS: [&str; 5] = ["sh", "bash", "shell", "console", "zsh"];

impl Block {
    fn language(&self) -> &str {
        self.info.split(' ').next().unwrap_or_default()
    }

    /// The first line of its text.
    pub(crate) fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// The fenced blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        let fence = line.strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(info)) => {
                open = Some(Block {
                    line: index + 1,
                    info: info.trim().to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is left open: {open:?}");
    found
}

/// The steps of a page: each `sh` block, with the `text` or `json` block right behind it.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let all = blocks(page);
    let lines: Vec<&str> = page.lines().collect();
    let each = all.iter().enumerate();
    let commands = each.filter(|(_, block)| block.language() == "sh");
    commands
        .map(|(index, block)| Step {
            commands: block.clone(),
            exit: exit(block),
            shown: all
                .get(index + 1)
                .filter(|next| matches!(next.language(), "text" | "json"))
                .filter(|next| adjoin(&lines, block, next))
                .cloned(),
        })
        .collect()
}

/// Blocks of commands that are shown and not run.
pub(crate) fn shown_only(page: &str) -> Vec<Block> {
    let other = |block: &Block| SHELLS[1..].contains(&block.language());
    blocks(page).into_iter().filter(other).collect()
}

/// The exit code in `sh exit=4`; 0 where none is named.
fn exit(block: &Block) -> i32 {
    let rest = block.info.strip_prefix("sh").unwrap_or_default().trim();
    if rest.is_empty() {
        return 0;
    }
    let code = rest
        .strip_prefix("exit=")
        .and_then(|code| code.parse().ok());
    code.unwrap_or_else(|| panic!("line {}: `{}` is not sh exit=N", block.line, block.info))
}

/// Whether nothing but empty lines stands between two blocks.
fn adjoin(lines: &[&str], first: &Block, second: &Block) -> bool {
    let end = first.line + first.text.lines().count() + 1;
    lines[end..second.line - 1]
        .iter()
        .all(|line| line.is_empty())
}

/// The page with other text in the block that opens on this line.
pub(crate) fn replaced(page: &str, block: &Block, text: &str) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let (before, rest) = lines.split_at(block.line);
    let after = &rest[block.text.lines().count()..];
    let mut out: Vec<&str> = before.to_vec();
    out.extend(text.lines());
    out.extend(after);
    out.join("\n") + "\n"
}
