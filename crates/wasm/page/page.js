// The page: opens a URL or a dropped file, and shows what it is, its layout, its schema and its rows.
// Text of a file only ever becomes text: never HTML.

import { ParquetFile } from '../marquetry.js';

const of = (id) => document.getElementById(id);
let file;
/** Counts what was asked for; answers to what was asked before are dropped. */
let asked = 0;

async function open(from) {
  const mine = ++asked;
  of('main').hidden = true;
  say('status', 'Opening …');
  try {
    const opened = await ParquetFile.open(from, { decryption: decryption() });
    if (mine !== asked) return opened.close();
    file?.close();
    file = opened;
    document.title = file.name;
    const info = file.info();
    showInfo(info);
    showMap(file.map());
    showSchema(file.schema());
    of('main').hidden = false;
    say('status', `${file.name} is open.`);
    await read();
  } catch (error) {
    if (mine === asked) fail('status', error);
  }
}

async function read() {
  const mine = ++asked;
  say('found', 'Reading …');
  try {
    const { where, columns } = wanted();
    const limit = Number(of('limit').value);
    const names = columns ?? file.schema().arrow.map((field) => field.name);
    const head = element('tr', names.map((name) => element('th', name)));
    const body = [];
    for await (const rows of file.readText({ where, columns, limit, batchRows: 1024 })) {
      if (mine !== asked) return;
      for (const row of rows) body.push(element('tr', row.map(cell)));
    }
    if (mine !== asked) return;
    of('rows').tHead.replaceChildren(head);
    of('rows').tBodies[0].replaceChildren(...body);
    const more = where === undefined ? ` of ${number(file.numRows)}` : ' that meet the condition';
    say('found', `${number(body.length)} rows${body.length === limit ? ', the first' : ''}${more}`);
  } catch (error) {
    if (mine === asked) fail('found', error);
  }
}

async function count() {
  const mine = ++asked;
  say('found', 'Counting …');
  try {
    const rows = await file.count(wanted().where);
    if (mine === asked) say('found', `${number(rows)} of ${number(file.numRows)} rows`);
  } catch (error) {
    if (mine === asked) fail('found', error);
  }
}

/** The keys that are typed in; files that are not encrypted open with them, too. */
function decryption() {
  const [footerKey, aadPrefix] = ['footer-key', 'aad-prefix'].map((id) => of(id).value.trim() || undefined);
  const pairs = of('column-keys').value.split(',').map((pair) => pair.trim()).filter(Boolean);
  if (!footerKey && pairs.length === 0) return undefined;
  const columnKeys = Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.lastIndexOf('=')), pair.slice(pair.lastIndexOf('=') + 1)]));
  return { footerKey, columnKeys, aadPrefix, plaintextFiles: true };
}

function wanted() {
  const where = of('where').value.trim();
  const columns = of('columns').value.split(',').map((name) => name.trim()).filter(Boolean);
  return { where: where || undefined, columns: columns.length ? columns : undefined };
}

function showInfo(info) {
  const shares = (parts) => Object.entries(parts).map(([name, n]) => `${name} ${number(n)}`).join(', ');
  const lines = {
    file: info.file,
    bytes: number(info.file_bytes),
    rows: number(info.rows),
    columns: number(info.columns),
    'row groups': number(info.row_groups),
    'written by': info.created_by ?? 'not stated',
    'uncompressed bytes': number(info.uncompressed_bytes),
    'where the bytes are': shares(Object.fromEntries(Object.entries(info.bytes).filter(([, n]) => n > 0).map(([name, n]) => [name.replaceAll('_', ' '), n]))),
    codecs: shares(info.codecs),
    encodings: shares(info.encodings),
    keys: info.key_values.join(', ') || 'none',
  };
  const rows = Object.entries(lines).map(([name, text]) => element('tr', [element('th', name), element('td', text)]));
  of('info').tBodies[0].replaceChildren(...rows);
}

function showMap(svg) {
  const parsed = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  of('map').replaceChildren(document.importNode(parsed, true));
}

function showSchema(schema) {
  const row = (leaf) => element('tr', [
    element('td', leaf.path.join('.')),
    element('td', leaf.type),
    element('td', leaf.repetition ?? ''),
    element('td', leaf.field_id === null ? '' : String(leaf.field_id)),
  ]);
  of('schema').tBodies[0].replaceChildren(...schema.leaves.map(row));
}

function cell(text) {
  const out = element('td', text ?? 'null');
  if (text === null) out.className = 'null';
  return out;
}

/** An element with text, or with other elements, in it. */
function element(name, content) {
  const out = document.createElement(name);
  if (Array.isArray(content)) out.append(...content);
  else out.textContent = content;
  return out;
}

function number(n) {
  return n.toLocaleString('en');
}

function say(id, text) {
  of(id).className = '';
  of(id).textContent = text;
}

function fail(id, error) {
  of(id).className = 'error';
  of(id).textContent = error.kind ? `${error.kind}: ${error.message}` : String(error);
}

of('open').addEventListener('submit', (event) => {
  event.preventDefault();
  if (of('url').value) void open(of('url').value);
});
of('file').addEventListener('change', () => {
  if (of('file').files.length) void open(of('file').files[0]);
});
of('read').addEventListener('submit', (event) => {
  event.preventDefault();
  void read();
});
of('count').addEventListener('click', () => void count());
document.addEventListener('dragover', (event) => {
  event.preventDefault();
  document.body.classList.add('over');
});
document.addEventListener('dragleave', () => document.body.classList.remove('over'));
document.addEventListener('drop', (event) => {
  event.preventDefault();
  document.body.classList.remove('over');
  const dropped = event.dataTransfer.files[0];
  if (dropped) void open(dropped);
});

// A link to a file: ?url=…&where=…&columns=…
const link = new URLSearchParams(location.search);
of('where').value = link.get('where') ?? '';
of('columns').value = link.get('columns') ?? '';
if (link.get('url')) {
  of('url').value = link.get('url');
  void open(link.get('url'));
}
