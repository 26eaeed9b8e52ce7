//! `completions` and `man`: scripts of shells, and manual pages.

use crate::support::folder::Folder;

#[test]
fn every_shell_completes_the_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.text(&["completions", shell]);
        for command in ["convert", "hexdump", "bloom"] {
            assert!(script.contains(command), "{shell} knows {command}");
        }
    }
    assert!(folder.refused(2, &["completions", "dos"]).contains("bash"));
}

#[test]
fn each_command_has_a_manual_page_with_its_examples() {
    let folder = Folder::new();
    let page = folder.text(&["man"]);
    assert!(page.contains(".TH marq 1") && page.contains("convert"), "{page}");
    std::fs::create_dir(folder.path("man1")).unwrap();
    folder.text(&["man", "-o", "man1"]);
    let names = folder.names("man1");
    for name in ["marq.1", "marq-head.1", "marq-crypt-encrypt.1"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let head = folder.content("man1/marq-head.1");
    assert!(head.contains("Examples") && head.contains("trips.parquet"), "{head}");
}
