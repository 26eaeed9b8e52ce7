// Parquet files in a browser. `marquetry.d.ts` describes everything.

import initBindings, { File as Bound, Keys } from './bindings.js';
import { SourceError, sourceOf } from './sources.js';

export { SourceError };

let loaded;

/** Loads the WebAssembly; `ParquetFile.open` does so by itself. */
export function init(wasm) {
  loaded ??= initBindings(wasm === undefined ? undefined : { module_or_path: wasm }).catch((error) => {
    loaded = undefined;
    throw error;
  });
  return loaded.then(() => undefined);
}

/** An error of a file, of a read, or of what was asked for. */
export class ParquetError extends Error {
  constructor(error, cause) {
    super(error.message, cause === undefined ? undefined : { cause });
    this.name = 'ParquetError';
    this.kind = error.kind ?? 'Internal';
    for (const place of ['rowGroup', 'column', 'page', 'offset']) this[place] = error[place];
  }
}

export class ParquetFile {
  #bound;
  #source;
  #name;

  constructor(token, bound, source, name) {
    if (token !== TOKEN) throw new TypeError('ParquetFile.open opens files');
    [this.#bound, this.#source, this.#name] = [bound, source, name];
  }

  static async open(from, options = {}) {
    await init();
    const source = new Watched(sourceOf(from, options));
    const open = () => Bound.open(source, options.memory, options.int96, options.decryption && source.keys(options.decryption));
    const bound = await source.watch(open);
    return new ParquetFile(TOKEN, bound, source, options.name ?? nameOf(from));
  }

  get name() {
    return this.#name;
  }

  get numRows() {
    return this.#source.checked(() => this.#bound.rows());
  }

  schema() {
    return JSON.parse(this.#source.checked(() => this.#bound.schema()));
  }

  info() {
    return { file: this.#name, ...JSON.parse(this.#source.checked(() => this.#bound.info())) };
  }

  keyValue(key) {
    return this.#bound.keyValue(key);
  }

  map() {
    return this.#source.checked(() => this.#bound.map(this.#name));
  }

  /** Each batch as an Arrow IPC stream of its own. */
  read(options = {}) {
    return this.#each(options, (batches) => batches.next());
  }

  /** All batches as one Arrow IPC stream. */
  async readAll(options = {}) {
    const batches = this.#start(options);
    try {
      return await this.#source.watch(() => batches.rest());
    } finally {
      batches.free();
    }
  }

  /** Each batch as rows of text. */
  async *readText(options = {}) {
    for await (const text of this.#each(options, (batches) => batches.nextText())) yield JSON.parse(text);
  }

  async count(where) {
    return await this.#source.watch(() => this.#bound.count(where));
  }

  /** Gives the memory back; the file cannot be used any more. */
  close() {
    this.#bound.free();
  }

  #start({ columns, where, limit, offset, batchRows }) {
    return this.#source.checked(() => this.#bound.read(columns, where, limit, offset, batchRows));
  }

  async *#each(options, next) {
    const batches = this.#start(options);
    try {
      for (;;) {
        const batch = await this.#source.watch(() => next(batches));
        if (batch === undefined) return;
        yield batch;
      }
    } finally {
      // Ends requests that are under way.
      batches.free();
    }
  }
}

const TOKEN = Symbol('ParquetFile.open');

/** A source whose last error is the cause of what comes of it. */
class Watched {
  #source;
  #fault;

  constructor(source) {
    this.#source = source;
    this.isLocal = source.isLocal === true;
  }

  readEnd(max, signal) {
    return this.#noted(() => this.#source.readEnd(max, signal), signal);
  }

  read(start, end, signal) {
    return this.#noted(() => this.#source.read(start, end, signal), signal);
  }

  /** Keys whose retriever is watched, too. */
  keys({ footerKey, columnKeys = {}, aadPrefix, retriever, plaintextFiles, unverifiedFooters, unauthenticatedPages }) {
    const keys = new Keys(plaintextFiles === true, unverifiedFooters === true, unauthenticatedPages === true);
    if (footerKey !== undefined) keys.setFooterKey(footerKey);
    for (const [path, key] of Object.entries(columnKeys)) keys.setColumnKey(path, key);
    if (aadPrefix !== undefined) keys.setAadPrefix(typeof aadPrefix === 'string' ? new TextEncoder().encode(aadPrefix) : aadPrefix);
    if (retriever !== undefined) keys.setRetriever((column, metadata) => this.#noted(() => retriever(column, metadata)));
    return keys;
  }

  async #noted(read, signal) {
    try {
      return await read();
    } catch (fault) {
      if (!signal?.aborted) this.#fault = fault;
      throw fault;
    }
  }

  async watch(work) {
    try {
      return await work();
    } catch (error) {
      throw this.#error(error);
    }
  }

  checked(work) {
    try {
      return work();
    } catch (error) {
      throw this.#error(error);
    }
  }

  #error(error) {
    return new ParquetError(error, error.kind === 'Io' ? this.#fault : error);
  }
}

function nameOf(from) {
  if (typeof from === 'string' || typeof from?.href === 'string') {
    const path = String(from).split(/[?#]/, 1)[0];
    return path.slice(path.lastIndexOf('/') + 1) || String(from);
  }
  return typeof from?.name === 'string' ? from.name : 'file';
}
