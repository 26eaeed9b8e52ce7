// What tests/browser.py runs in a browser.

import { ParquetError, ParquetFile, SourceError } from '../pkg/marquetry.js';

const ports = new URLSearchParams(location.search);
const elsewhere = `http://127.0.0.1:${ports.get('open')}`;
const closed = `http://127.0.0.1:${ports.get('closed')}`;

async function post(path, body) {
  await fetch(`/${path}`, { method: 'POST', body });
}

async function check(name, ok, detail = '') {
  await post('check', JSON.stringify({ name, ok: Boolean(ok), detail: String(detail) }));
}

async function same(name, found, expected) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  await check(name, a === b, `${a}, not ${b}`);
}

/** Sends the batches of a read, which are compared with those of pyarrow. */
async function send(name, file, options) {
  let batches = 0;
  for await (const batch of file.read(options)) {
    await post(`batches/${encodeURIComponent(name)}`, batch);
    batches += 1;
  }
  if (batches === 0) await post(`batches/${encodeURIComponent(name)}`, await file.readAll(options));
  return batches;
}

async function requests() {
  return (await fetch('/requests')).json();
}

/** That something fails, with the kind and words in the message. */
async function fails(name, work, kind, ...words) {
  try {
    await work();
    await check(name, false, 'it does not fail');
  } catch (error) {
    const wrong = !(error instanceof ParquetError) || error.kind !== kind || words.some((word) => !error.message.includes(word));
    await check(name, !wrong, `${error.name} ${error.kind}: ${error.message}`);
    return error;
  }
}

async function allFiles() {
  for (const name of await (await fetch('/list')).json()) {
    const file = await ParquetFile.open(`/data/${name}`);
    await send(name, file, {});
    file.close();
  }
}

async function reads() {
  const file = await ParquetFile.open(new URL('/data/trips.parquet', location));
  await same('name', file.name, 'trips.parquet');
  await same('numRows', file.numRows, 1000);
  const info = file.info();
  await same('info', [info.rows, info.row_groups, info.file_bytes, info.row_group_rows.length], [1000, 4, 63993, 4]);
  const sum = Object.values(info.bytes).reduce((sum, n) => sum + n, 0);
  await same('info: parts are the file', sum, info.file_bytes);
  const { leaves, arrow } = file.schema();
  await same('schema', [leaves[0].path, leaves.length, arrow.map((field) => field.name).includes('stops')], [['id'], info.columns, true]);
  await check('schema: children', arrow.find((field) => field.name === 'stops').children[0].children.length === 3);
  await send('trips.parquet?columns=id,vendor', file, { columns: ['id', 'vendor'] });
  await send('trips.parquet?columns=vendor,id&limit=10&offset=245', file, { columns: ['vendor', 'id'], limit: 10, offset: 245 });
  const sizes = [];
  for await (const rows of file.readText({ columns: ['id'], batchRows: 100 })) sizes.push(rows.length);
  await check('batchRows', Math.max(...sizes) <= 100 && sizes.reduce((a, b) => a + b) === 1000, sizes);
  await same('count', await file.count(), 1000);
  const counted = await file.count("fare > 20 and vendor = 'Amber'");
  let found = 0;
  for await (const rows of file.readText({ where: "fare > 20 and vendor = 'Amber'", columns: ['fare', 'vendor'] })) {
    found += rows.filter(([fare, vendor]) => Number(fare) > 20 && vendor === 'Amber').length;
  }
  await check('count where', counted === found && found > 0 && found < 1000, `${counted} ${found}`);
  await fails('no such column', () => file.readAll({ columns: ['nothing'] }), 'Usage', 'nothing');
  await fails('no condition', () => file.count('fare >'), 'Usage', 'character 7');
  await fails('no such number', () => file.readAll({ limit: -1 }), 'Usage', 'limit', '-1');
  // Several reads of a file at a time.
  const both = await Promise.all([file.readAll({ columns: ['id'] }), file.count('id < 10')]);
  await check('side by side', both[0].length > 8000 && both[1] === 10, both[1]);
  // A loop that is left.
  for await (const batch of file.read({ batchRows: 10 })) {
    await check('a loop that is left', batch.length > 0);
    break;
  }
  await same('after it', await file.count('id >= 990'), 10);
  file.close();
  await fails('a closed file', () => file.count(), 'Internal');
}

async function sources() {
  const bytes = new Uint8Array(await (await fetch('/data/trips.parquet')).arrayBuffer());
  const padded = new Uint8Array(bytes.length + 9);
  padded.set(bytes, 4);
  const kinds = {
    bytes,
    'a view of bytes': padded.subarray(4, 4 + bytes.length),
    'an ArrayBuffer': bytes.buffer,
    'a Blob': new Blob([bytes]),
    'a File': new File([bytes], 'dropped.parquet'),
    'a source': {
      readEnd: async (max) => ({ bytes: bytes.slice(Math.max(0, bytes.length - max)), size: bytes.length }),
      read: async (start, end) => bytes.slice(start, end),
    },
    'a blob: URL': URL.createObjectURL(new Blob([bytes])),
  };
  for (const [name, from] of Object.entries(kinds)) {
    const file = await ParquetFile.open(from);
    await same(`from ${name}`, [file.numRows, await file.count('id < 7')], [1000, 7]);
    if (from instanceof File) await same('the name of a File', file.name, 'dropped.parquet');
  }
  await fails('a source that lies about bytes', () => ParquetFile.open({
    readEnd: async () => ({ bytes: new Uint8Array(3), size: 1000 }), read: async () => new Uint8Array(0),
  }), 'Io', '3 bytes');
  const boom = new RangeError('boom');
  const error = await fails('a source that throws', () => ParquetFile.open({ readEnd: async () => { throw boom; }, read() {} }), 'Io', 'boom');
  await check('its error is the cause', error.cause === boom);
}

async function options() {
  const found = {};
  for (const int96 of ['us', 'ns', undefined]) {
    const file = await ParquetFile.open('/data/int96.parquet', { int96 });
    const field = file.schema().arrow.find(({ type }) => type.startsWith('Timestamp'));
    found[int96] = field.type;
    await send(`int96.parquet?unit=${int96}`, file, {});
  }
  await check('units of INT96', found.us !== found.ns && found.ns === found.undefined, JSON.stringify(found));
  await fails('no unit', () => ParquetFile.open('/data/int96.parquet', { int96: 'days' }), 'Usage', 'days');
}

/** Files by pyarrow: all hold what plain.parquet holds. */
async function encryption() {
  const [header, ...lines] = (await (await fetch('/data/encrypted/keys.tsv')).text()).trimEnd().split('\n').map((line) => line.split('\t'));
  const listed = lines.map((line) => Object.fromEntries(header.map((name, i) => [name, line[i]])));
  let opened = 0;
  for (const { file, footer_key: footerKey, aad_prefix } of listed.filter((line) => line.footer_key !== 'kms')) {
    const decryption = { footerKey, aadPrefix: aad_prefix || undefined, unauthenticatedPages: file.startsWith('ctr') };
    await send(`encrypted/plain.parquet?file=${file}`, await ParquetFile.open(`/data/encrypted/${file}`, { decryption }), {});
    opened += 1;
  }
  await same('encrypted files by keys', opened, 12);

  // Its key management service wraps a key by writing the master key in front of it.
  const asked = [];
  const unwrap = (column, metadata) => {
    asked.push(column);
    return Uint8Array.from(atob(JSON.parse(new TextDecoder().decode(metadata)).wrappedDEK), (char) => char.charCodeAt(0)).subarray(16);
  };
  const kms = '/data/encrypted/kms_single_internal.parquet';
  await send('encrypted/plain.parquet?file=kms', await ParquetFile.open(kms, { decryption: { retriever: async (...of) => unwrap(...of) } }), {});
  await check('the retriever is asked for the footer first, and for columns', asked[0] === undefined && asked.includes('tags.list.element'), asked);
  const some = await ParquetFile.open(kms, { decryption: { retriever: (column, metadata) => (column === 'amount' ? undefined : unwrap(column, metadata)) } });
  await same('a column whose key is not known', some.numRows, 60);
  await fails('its values', () => some.readAll({ columns: ['amount'] }), 'Crypto', 'amount');
  await send('encrypted/plain.parquet?columns=id,name', some, { columns: ['id', 'name'] });
  const boom = new RangeError('no service');
  const error = await fails('a retriever that throws', () => ParquetFile.open(kms, { decryption: { retriever: async () => { throw boom; } } }), 'Io', 'no service');
  await check('its error is the cause, too', error.cause === boom);

  const [{ file, footer_key: key, aad_prefix: aadPrefix }] = listed;
  const opens = (decryption) => () => ParquetFile.open(`/data/encrypted/${file}`, { decryption });
  await fails('no key', opens(undefined), 'Crypto');
  await fails('the wrong key', opens({ footerKey: key.replace(/^../, '00'), aadPrefix }), 'Crypto');
  await fails('the wrong prefix', opens({ footerKey: key, aadPrefix: 'other' }), 'Crypto');
  await fails('no length of keys', opens({ footerKey: new Uint8Array(15) }), 'Usage');
  await fails('no key at all', opens({ footerKey: 7 }), 'Usage', 'hexadecimal');
  const plain = '/data/encrypted/plain.parquet';
  await fails('a file that is not encrypted', () => ParquetFile.open(plain, { decryption: { footerKey: key } }), 'Crypto');
  await same('where it is allowed', (await ParquetFile.open(plain, { decryption: { footerKey: key, plaintextFiles: true } })).numRows, 60);
  const unauthenticated = listed.find((line) => line.file === 'ctr_192_encrypted_uniform.parquet');
  await fails('pages that are not authenticated', () => ParquetFile.open(`/data/encrypted/${unauthenticated.file}`, { decryption: { footerKey: unauthenticated.footer_key } }), 'Crypto');
}

/** Page indexes, filters and columns leave out most of a file. */
async function ranges() {
  await requests();
  const file = await ParquetFile.open('/data/sorted.parquet');
  const opening = await requests();
  await same('opening takes one request', opening.map(([method, , range]) => [method, range.startsWith('bytes=-')]), [['GET', true]]);
  await send('sorted.parquet?from=120000&to=120050', file, { where: 'id >= 120000 and id < 120050' });
  const filtered = await requests();
  const loaded = filtered.reduce((sum, [, , , bytes]) => sum + bytes, 0);
  const { file_bytes: size } = file.info();
  await check('a filter reads few pages', filtered.length > 0 && loaded * 4 < size, `${loaded} of ${size}, ${filtered.length} requests`);
  await file.readAll({ columns: ['id'] });
  const column = (await requests()).reduce((sum, [, , , bytes]) => sum + bytes, 0);
  await check('a column is less than the file', column > 0 && column * 2 < size, `${column} of ${size}`);
  await same('pruned by statistics', await file.count('id > 1000000'), 0);
  await same('without a request', await requests(), []);
  // Requests that nobody waits for are aborted, or were answered: the file can be read on.
  const batches = file.read({ batchRows: 1000 });
  await batches.next();
  await batches.return();
  await same('after a read that is given up', await file.count('id < 100'), 100);
}

async function servers() {
  await requests();
  let file = await ParquetFile.open(`${elsewhere}/data/trips.parquet`);
  await same('another origin', [file.numRows, await file.count('id < 7')], [1000, 7]);
  const asked = await requests();
  await same('another origin: no preflight', asked.filter(([method]) => method === 'OPTIONS'), []);
  await same('another origin: the size by HEAD', [asked[0][0], asked[1][0]], ['HEAD', 'GET']);
  file = await ParquetFile.open(`${elsewhere}/signed/trips.parquet`);
  await same('a URL that is signed for GET', await file.count('id < 7'), 7);
  file = await ParquetFile.open('/nosuffix/trips.parquet');
  await same('a server without suffix ranges', await file.count('id < 7'), 7);
  const cors = await fails('no CORS', () => ParquetFile.open(`${closed}/data/trips.parquet`), 'Io', 'CORS', `${closed}/data/trips.parquet`);
  await check('no CORS: the cause', cors.cause instanceof SourceError);
  await fails('no server', () => ParquetFile.open('http://127.0.0.1:9/x.parquet'), 'Io', 'cannot be reached');
  const missing = await fails('404', () => ParquetFile.open('/data/missing.parquet'), 'Io', '404');
  await same('404: the status', missing.cause.status, 404);
  await fails('404 elsewhere', () => ParquetFile.open(`${elsewhere}/data/missing.parquet`), 'Io', '404');
  for (const status of [401, 403, 500, 503]) {
    await fails(`status ${status}`, () => ParquetFile.open(`/status/${status}`), 'Io', String(status));
  }
  await fails('ranges are ignored', () => ParquetFile.open('/ignoring/sorted.parquet'), 'Io', 'ignores ranges', 'ranges: false');
  await fails('ranges are ignored elsewhere', () => ParquetFile.open(`${elsewhere}/ignoring/sorted.parquet`), 'Io', 'ignores ranges');
  file = await ParquetFile.open('/ignoring/sorted.parquet', { ranges: false });
  await same('the whole file is loaded', await file.count('id < 7'), 7);
  file = await ParquetFile.open('/ignoring/codec_zstd.parquet');
  await same('a short file whose range is all of it', file.numRows, 300);
  file = await ParquetFile.open('/changing/sorted.parquet');
  await fails('a file that changes', () => file.readAll({ columns: ['id'] }), 'Io', 'changed', 'etag');
  file = await ParquetFile.open('/short/sorted.parquet');
  await fails('an answer that is too short', () => file.readAll(), 'Io', 'bytes came');
  await fails('an empty file', () => ParquetFile.open('/data/empty.parquet'), 'Malformed');
  await fails('no Parquet file', () => ParquetFile.open('/data/none.parquet'), 'Malformed');
  await fails('too little memory', async () => (await ParquetFile.open('/data/sorted.parquet', { memory: 10_000 })).readAll(), 'Limit');
  let given;
  await ParquetFile.open('/data/trips.parquet', {
    requestInit: { headers: { Authorization: 'x' } },
    fetch: (url, init) => { given = init; return fetch(url, init); },
  });
  await same('headers of the caller', [given.headers.get('authorization'), given.headers.has('range')], ['x', true]);
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, test) {
  for (let i = 0; i < 400; i++) {
    if (test()) return;
    await sleep(25);
  }
  const shown = document.getElementById('page').contentDocument;
  throw new Error(`${what}: it does not come: ${shown.getElementById('status')?.textContent} ${shown.getElementById('found')?.textContent}`);
}

/** The page, as a user has it. */
async function page() {
  const frame = document.getElementById('page');
  frame.src = '/pkg/page/index.html?url=/data/trips.parquet';
  await new Promise((done) => frame.addEventListener('load', done, { once: true }));
  const shown = () => frame.contentDocument;
  const text = (id) => shown().getElementById(id).textContent;
  const cells = (id) => [...shown().querySelectorAll(`#${id} tbody tr`)].map((row) => [...row.children].map((cell) => cell.textContent));
  await until('rows are shown', () => text('found').includes('100 rows'));
  await same('the page: info', cells('info').find(([name]) => name === 'rows'), ['rows', '1,000']);
  await same('the page: first leaf', cells('schema')[0].slice(0, 3), ['id', 'int64', 'REQUIRED']);
  await same('the page: rows', [cells('rows').length, cells('rows')[99][0]], [100, '99']);
  await check('the page: map', shown().querySelectorAll('#map svg rect').length >= 4 * 9);
  shown().getElementById('where').value = 'id >= 500';
  shown().getElementById('columns').value = 'id, vendor';
  shown().getElementById('limit').value = '5';
  shown().getElementById('read').requestSubmit();
  await until('rows of a filter', () => text('found').includes('5 rows'));
  await same('the page: a filter', cells('rows').map((row) => row[0]), ['500', '501', '502', '503', '504']);
  shown().getElementById('count').click();
  await until('a count', () => text('found') === '500 of 1,000 rows');
  shown().getElementById('where').value = 'id >';
  shown().getElementById('read').requestSubmit();
  await until('an error', () => shown().getElementById('found').className === 'error');
  await check('the page: an error', text('found').startsWith('Usage'), text('found'));
  // An encrypted file, with its key.
  for (const id of ['where', 'columns']) shown().getElementById(id).value = '';
  const keys = (await (await fetch('/data/encrypted/keys.tsv')).text()).split('\n').map((line) => line.split('\t'));
  const [encrypted, key] = keys.find(([name]) => name === 'gcm_192_encrypted_uniform.parquet');
  shown().getElementById('url').value = new URL(`/data/encrypted/${encrypted}`, location);
  shown().getElementById('open').requestSubmit();
  await until('a key is missing', () => shown().getElementById('status').className === 'error');
  await check('the page: a key is missing', text('status').startsWith('Crypto'), text('status'));
  shown().getElementById('footer-key').value = key;
  shown().getElementById('open').requestSubmit();
  await until('rows of an encrypted file', () => text('found').includes('5 rows'));
  await same('the page: an encrypted file', cells('rows').map((row) => row[1]), ['name 0', 'name 1', 'name 2', 'null', 'name 4']);
  shown().getElementById('limit').value = '100';
  // A file is dropped whose names and values would be HTML.
  for (const id of ['where', 'columns']) shown().getElementById(id).value = '';
  const bytes = await (await fetch('/data/hostile.parquet')).arrayBuffer();
  const transfer = new frame.contentWindow.DataTransfer();
  transfer.items.add(new File([bytes], '<b>hostile</b>.parquet'));
  shown().dispatchEvent(new frame.contentWindow.DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
  await until('a dropped file', () => text('found').includes('3 rows'));
  await sleep(200);
  await same('the page: nothing of a file is HTML', [shown().querySelectorAll('img, b, main script').length, window.pwned ?? 0], [0, 0]);
  await same('the page: hostile values', cells('rows').map((row) => row[0]), ['<script>parent.pwned=1</script>', 'a\\u{202e}b\\u{1b}[31m', 'null']);
  await same('the page: the name of a dropped file', cells('info')[0], ['file', '<b>hostile</b>.parquet']);
  await check('the page: the map is well formed', shown().querySelector('#map svg title').textContent.startsWith('<b>hostile</b>.parquet'));
}

try {
  for (const tests of [allFiles, reads, options, sources, encryption, ranges, servers, page]) await tests();
  await post('done', 'null');
} catch (error) {
  await post('done', JSON.stringify(`${error?.stack ?? error}`));
}
