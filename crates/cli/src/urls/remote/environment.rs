//! Reads the environment and the files of a user: profiles of AWS, passwords of `.netrc`, and the
//! machine that this is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A variable that is set, and not empty.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The variables that begin with a prefix, by their names in small letters; those that are empty
/// are as if they were not set.
pub(super) fn variables(prefix: &str) -> impl Iterator<Item = (String, String)> {
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty())
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
}

fn home() -> Option<PathBuf> {
    variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from)
}

/// A profile of AWS: what both of its files say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) name: String,
    values: HashMap<String, String>,
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, or the default one; without values if there is none.
    pub(super) fn load() -> Self {
        let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let file = |variable_name: &str, below: &str| {
            let path = variable(variable_name).map(PathBuf::from);
            let path = path.or_else(|| Some(home()?.join(".aws").join(below)))?;
            std::fs::read_to_string(path).ok()
        };
        let config = file("AWS_CONFIG_FILE", "config").unwrap_or_default();
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials").unwrap_or_default();
        Self::parse(&name, &config, &credentials)
    }

    /// `credentials` goes before `config`.
    fn parse(name: &str, config: &str, credentials: &str) -> Self {
        let mut values = section(config, &format!("profile {name}"));
        if name == "default" || values.is_empty() {
            values.extend(section(config, name));
        }
        values.extend(section(credentials, name));
        Self { name: name.to_owned(), values }
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// How the profile gets its keys, where that is not by stating them.
    pub(super) fn other_way(&self) -> Option<&'static str> {
        [
            ("sso_session", "single sign-on"),
            ("sso_start_url", "single sign-on"),
            ("login_session", "a login session"),
            ("role_arn", "a role"),
            ("credential_process", "a credential process"),
            ("web_identity_token_file", "a web identity"),
        ]
        .into_iter()
        .find_map(|(key, way)| self.get(key).map(|_| way))
    }
}

/// The keys and values of a section of an INI file.
fn section(text: &str, name: &str) -> HashMap<String, String> {
    let (mut values, mut is_wanted) = (HashMap::new(), false);
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(title) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            let title: Vec<&str> = title.split_whitespace().collect();
            is_wanted = title.join(" ") == name;
        } else if let Some((key, value)) = line.split_once('=')
            && is_wanted
            && !is_nested
            && !line.starts_with(['#', ';'])
        {
            values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    values
}

/// The user and password for a machine in `~/.netrc`, or in the file that `NETRC` names.
pub(super) fn netrc(machine: &str) -> Option<(String, String)> {
    let path = variable("NETRC").map(PathBuf::from);
    let path = path.or_else(|| Some(home()?.join(".netrc")))?;
    of_netrc(&std::fs::read_to_string(path).ok()?, machine)
}

fn of_netrc<'a>(text: &'a str, machine: &str) -> Option<(String, String)> {
    // As curl and Python: a comment begins with a word, and a password may have a # within.
    let words = |line: &'a str| line.split_whitespace().take_while(|word| !word.starts_with('#'));
    let mut words = text.lines().flat_map(words);
    let (mut is_wanted, mut login, mut password) = (false, None, None);
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" if is_wanted && password.is_some() => break,
            "machine" => is_wanted = words.next() == Some(machine),
            "default" => is_wanted = true,
            "login" if is_wanted => login = words.next(),
            "password" if is_wanted => password = words.next(),
            "login" | "password" | "account" => drop(words.next()),
            _ => {}
        }
    }
    Some((login.unwrap_or_default().to_owned(), password?.to_owned()))
}

/// Whether this is a machine of a cloud, which gives its programs keys: known by what its firmware
/// says, because asking for keys elsewhere takes long to fail.
pub(super) fn is_machine_of(vendor: &str) -> bool {
    ["sys_vendor", "product_name"].iter().any(|file| {
        let path = Path::new("/sys/class/dmi/id").join(file);
        std::fs::read_to_string(path).is_ok_and(|text| text.contains(vendor))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_what_both_files_say() {
        let config = "[default]\nregion = eu-west-1\n[profile  work]\nregion=eu-north-1\n\
                      endpoint_url = http://127.0.0.1:9000\ns3 =\n  region = nested\n";
        let keys =
            "# comment\n[work]\naws_access_key_id = A\naws_secret_access_key=S/=\n[x]\na=b\n";
        let work = Profile::parse("work", config, keys);
        assert_eq!(work.get("region"), Some("eu-north-1"));
        assert_eq!(work.get("endpoint_url"), Some("http://127.0.0.1:9000"));
        assert_eq!(work.get("aws_secret_access_key"), Some("S/="));
        assert_eq!(work.get("a"), None);
        let default = Profile::parse("default", config, keys);
        assert_eq!((default.get("region"), default.other_way()), (Some("eu-west-1"), None));
        let sso = Profile::parse("p", "[profile p]\nsso_session = corp\n", "");
        assert_eq!(sso.other_way(), Some("single sign-on"));
    }

    #[test]
    fn netrc_has_a_password_for_each_machine() {
        let text = "# machine a.org\nmachine a.org login me password one\nmachine b.org\n  \
                    login you\n  password t#wo # comment\n#default\ndefault login any password three\n";
        let found = |machine| of_netrc(text, machine).expect("a password");
        assert_eq!(found("a.org"), ("me".to_owned(), "one".to_owned()));
        assert_eq!(found("b.org"), ("you".to_owned(), "t#wo".to_owned()));
        assert_eq!(found("c.org"), ("any".to_owned(), "three".to_owned()));
        assert_eq!(of_netrc("machine a login b password c", "d"), None);
    }
}
