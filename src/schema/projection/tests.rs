use super::*;
use crate::error::ErrorKind;
use crate::schema::samples::{
    Optional, Repeated, Required, Tree as Sample, col, drawn, group, list, map, schema,
};
use crate::schema::{ArrowOptions, Physical, to_arrow};

fn int(name: &str) -> Sample {
    col(Optional, Physical::Int32, name)
}

fn file() -> Schema {
    schema([
        int("id"),
        group(
            Optional,
            "user",
            [int("name"), int("age"), group(Required, "home", [int("zip"), int("city")])],
        ),
        list(Optional, "tags", int("element")),
        list(
            Optional,
            "items",
            group(Optional, "element", [int("sku"), int("price"), int("element")]),
        ),
        map(Optional, "prices", int("key"), group(Optional, "value", [int("net"), int("gross")])),
        group(Repeated, "events", [int("at"), int("what")]),
        int("user.name"),
        group(Optional, "a", [group(Optional, "b.c", [int("d")]), int("b.c.e")]),
        int(""),
    ])
}

/// The names and leaves of what is read: `user{age#2,name#1}`.
fn read(projection: &Projection) -> Result<String> {
    fn text(shape: &crate::schema::Shape) -> String {
        use crate::schema::Kind;
        let below = match &shape.kind {
            Kind::Leaf { leaf } => return format!("{}#{leaf}", shape.field.name()),
            Kind::Struct(children) => {
                let children: Vec<_> = children.iter().map(text).collect();
                format!("{{{}}}", children.join(","))
            }
            Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
                format!("[{}]", text(child))
            }
            Kind::Missing => unreachable!("no target"),
        };
        format!("{}{below}", shape.field.name())
    }
    let mapping = to_arrow(&file(), &[], projection, &ArrowOptions::default())?;
    let shapes: Vec<_> = mapping.shapes.iter().map(text).collect();
    Ok(shapes.join(" "))
}

#[test]
fn names_and_nested_paths_in_the_order_given() {
    let table: &[(&[&str], &str)] = &[
        (&[], ""),
        (&["tags", "id"], "tags[element#5] id#0"),
        (&["user"], "user{name#1,age#2,home{zip#3,city#4}}"),
        (&["user.age", "id", "user.home.zip"], "user{age#2,home{zip#3}} id#0"),
        // A name with a dot wins over the path.
        (&["user.name"], "user.name#14"),
        (&["a.b.c.d"], "a{b.c{d#15}}"),
        (&["a.b.c.e"], "a{b.c.e#16}"),
        (&["a.b.c"], "a{b.c{d#15}}"),
        (&[""], "#17"),
        // Twice, and a part of what is there already.
        (&["id", "id"], "id#0"),
        (&["user.age", "user"], "user{name#1,age#2,home{zip#3,city#4}}"),
        (&["user", "user.age"], "user{name#1,age#2,home{zip#3,city#4}}"),
        // Lists: the names in between may be left out.
        (&["tags.list.element"], "tags[element#5]"),
        (&["tags.element"], "tags[element#5]"),
        (&["tags.list"], "tags[element#5]"),
        (&["items.list.element.sku"], "items[element{sku#6}]"),
        (&["items.element.sku"], "items[element{sku#6}]"),
        (&["items.price", "items.sku"], "items[element{price#7,sku#6}]"),
        (&["items.element"], "items[element{sku#6,price#7,element#8}]"),
        (&["items.element.element"], "items[element{element#8}]"),
        (&["events.what"], "events[events{what#13}]"),
        // Maps keep their key; a key alone is no map.
        (&["prices.value.gross"], "prices[key_value{key#9,value{gross#11}}]"),
        (&["prices.key_value.value.net"], "prices[key_value{key#9,value{net#10}}]"),
        (&["prices.key"], "prices[key_value{key#9,value{net#10,gross#11}}]"),
        (&["prices.value"], "prices[key_value{key#9,value{net#10,gross#11}}]"),
    ];
    for (names, expected) in table {
        let projection = Projection::names(names.iter().copied());
        assert_eq!(read(&projection).unwrap(), *expected, "{names:?}");
    }
}

#[test]
fn names_that_stand_for_nothing() {
    for name in
        ["ID", "user.", "user.nam", ".user", "id.x", "tags.list.item", "a.b", "user..age", "."]
    {
        let error = read(&Projection::names([name])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{name:?}");
    }
    let message = |name: &str| read(&Projection::names([name])).unwrap_err().message().to_owned();
    assert!(message("Tag").contains("\"tags\""), "{}", message("Tag"));
    assert!(!message("something else entirely").contains("did you mean"));
}

#[test]
fn exact_paths() {
    for (path, expected) in [
        (&["user", "name"][..], "user{name#1}"),
        (&["user.name"], "user.name#14"),
        (&["a", "b.c", "d"], "a{b.c{d#15}}"),
        (&["items", "sku"], "items[element{sku#6}]"),
    ] {
        assert_eq!(read(&Projection::paths([path.iter().copied()])).unwrap(), expected);
    }
    for path in [&["user", "age", "x"][..], &["a", "b", "c", "d"], &[]] {
        let error = read(&Projection::paths([path.iter().copied()])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{path:?}");
    }
}

#[test]
fn indexes_of_columns_and_of_fields() {
    for (leaves, expected) in [
        (&[][..], ""),
        (&[0], "id#0"),
        (&[4, 0, 1, 4], "id#0 user{name#1,home{city#4}}"),
        (&[7], "items[element{price#7}]"),
        (&[11], "prices[key_value{key#9,value{gross#11}}]"),
        (&[9], "prices[key_value{key#9,value{net#10,gross#11}}]"),
        (&[17, 14], "user.name#14 #17"),
    ] {
        let projection = Projection::leaves(leaves.iter().copied());
        assert_eq!(read(&projection).unwrap(), expected, "{leaves:?}");
    }
    let projection = Projection::fields([6, 0, 6]);
    assert_eq!(read(&projection).unwrap(), "user.name#14 id#0");
    for projection in [Projection::leaves([18]), Projection::fields([9])] {
        assert_eq!(read(&projection).unwrap_err().kind(), ErrorKind::Usage);
    }
}

#[test]
fn names_that_repeat_are_ambiguous() {
    let file = schema([int("a"), int("b"), int("a")]);
    let options = ArrowOptions::default();
    let error = to_arrow(&file, &[], &Projection::names(["a"]), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let mapping = to_arrow(&file, &[], &Projection::fields([2]), &options).unwrap();
    assert_eq!(mapping.leaves(), [2]);
    assert_eq!(to_arrow(&file, &[], &Projection::all(), &options).unwrap().leaves(), [0, 1, 2]);
}

#[test]
fn levels_do_not_depend_on_the_projection() {
    let file = file();
    let options = ArrowOptions::default();
    let projection = Projection::names(["items.price"]);
    let mapping = to_arrow(&file, &[], &projection, &options).unwrap();
    let expected = "items? 0/1/0 list 2@1 <element? 2/3/1 {price? 2/4/1 Int32 #7}>";
    assert_eq!(drawn(&mapping.shapes[0]), expected);
}

#[test]
fn rules_for_lists_look_at_the_file_not_at_what_is_left() {
    // Rule 2: a group of two fields stays the element when one of them is read.
    let file = schema([group(Optional, "a", [group(Repeated, "r", [int("x"), int("y")])])
        .logical(crate::format::LogicalType::List)]);
    let projection = Projection::names(["a.y"]);
    let mapping = to_arrow(&file, &[], &projection, &ArrowOptions::default()).unwrap();
    let expected = "a? 0/1/0 list 2@1 <r 2/2/1 {y? 2/3/1 Int32 #1}>";
    assert_eq!(drawn(&mapping.shapes[0]), expected);
}

#[test]
fn columns_by_name() {
    let file = file();
    assert_eq!(file.leaf_named("user.age").unwrap(), 2);
    assert_eq!(file.leaf_named("tags").unwrap(), 5);
    assert_eq!(file.leaf_named("items.sku").unwrap(), 6);
    for name in ["user", "x", "prices"] {
        assert_eq!(file.leaf_named(name).unwrap_err().kind(), ErrorKind::Usage, "{name}");
    }
}

#[test]
fn edit_distance() {
    let naive = |a: &str, b: &str| {
        fn go(a: &[char], b: &[char]) -> usize {
            match (a, b) {
                ([], rest) | (rest, []) => rest.len(),
                ([x, a @ ..], [y, b @ ..]) if x == y => go(a, b),
                ([_, c @ ..], [_, d @ ..]) => 1 + go(c, d).min(go(a, d)).min(go(c, b)),
            }
        }
        let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<_>>());
        go(&a, &b)
    };
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let mut word = || -> String { (0..rng.usize(..7)).map(|_| rng.char('a'..'d')).collect() };
        let (a, b) = (word(), word());
        let far = naive(&a, &b);
        let near = (far <= 1 + a.len().max(b.len()) / 4).then_some(far);
        assert_eq!(distance(&a, &b), near, "{a:?} {b:?}");
    }
    assert_eq!(distance("USER_ID", "user_id"), Some(0));
    assert_eq!(distance(&"x".repeat(65), "x"), None);
}

#[test]
fn ten_thousand_names_are_found_at_once() {
    let names: Vec<String> = (0..10_000).map(|i| format!("column {i}")).collect();
    let file = schema(names.iter().map(|name| int(name)));
    let projection = Projection::names(names.iter().rev());
    let projected = projection.resolve(&file).unwrap().unwrap();
    let positions: Vec<_> = projected.iter().map(|wanted| wanted.position).collect();
    assert_eq!(positions, (0..10_000).rev().collect::<Vec<_>>());
}

#[test]
fn a_member_with_the_name_of_the_repeated_node_is_meant_where_the_elements_have_one() {
    let of = |names: [&str; 2]| group(Optional, "element", names.map(int));
    let three = |members| list(Optional, "c1", of(members));
    let two = group(Optional, "c1", [group(Repeated, "list", ["list", "x"].map(int))])
        .logical(crate::format::LogicalType::List);
    let value = group(Optional, "value", ["key_value", "value"].map(int));
    let map = map(Optional, "c1", int("key"), value);
    // The leaf that the name stands for, if it is one.
    for (file, name, expected) in [
        (three(["list", "x"]), "c1.list", Some("c1.list.element.list")),
        (three(["list", "x"]), "c1.list.list", Some("c1.list.element.list")),
        (three(["list", "x"]), "c1.element.list", Some("c1.list.element.list")),
        (three(["list", "x"]), "c1.list.element.list", Some("c1.list.element.list")),
        (three(["list", "x"]), "c1.list.x", Some("c1.list.element.x")),
        (three(["list", "x"]), "c1.list.element", None),
        (three(["list", "x"]), "c1", None),
        // The element itself is there in the rows.
        (three(["element", "x"]), "c1.element", None),
        (three(["element", "x"]), "c1.list.element", None),
        (three(["element", "x"]), "c1.list", None),
        (two.clone(), "c1.list", None),
        (two, "c1.list.list", Some("c1.list.list")),
        (map.clone(), "c1.value", None),
        (map.clone(), "c1.value.value", Some("c1.key_value.value.value")),
        (map, "c1.key_value", None),
    ] {
        let schema = schema([file]);
        let node = schema.node_named(name).unwrap();
        let found = (node.leaves().len() == 1).then(|| node.path().dotted());
        assert_eq!(found.as_deref(), expected, "{name}");
        let names: Vec<String> = name.split('.').map(str::to_owned).collect();
        let by_name = Projection::names([name]).resolve(&schema).unwrap();
        assert_eq!(Projection::paths([names]).resolve(&schema).unwrap(), by_name, "{name}");
        // The paths of leaves stand for themselves, whatever the names.
        for leaf in 0..schema.leaves_len() {
            let path = schema.leaf(leaf).unwrap().path.dotted();
            assert_eq!(schema.leaf_named(&path).unwrap(), leaf, "{path}");
        }
    }
}

#[test]
fn a_path_of_very_many_parts_is_refused_at_once() {
    let schema = file();
    for path in [vec!["a"; 1_000].join("."), vec![""; 1_000].join(".")] {
        let steps = crate::steps::taken_by(|| {
            let error = schema.node_named(&path).expect_err("no such column");
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().len() < 1_000, "{} bytes", error.to_string().len());
        });
        assert!(steps < 100_000, "{steps} names looked up");
    }
}
