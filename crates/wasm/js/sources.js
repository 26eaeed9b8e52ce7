// Sources: where the bytes of a file come from. A source has
//   readEnd(max, signal) -> { bytes, size }   the last `max` bytes, or all, and the size of the file
//   read(start, end, signal) -> Uint8Array    all bytes of the range
//   isLocal                                   whether the bytes are on this machine
// Both return promises; `signal` aborts what is not wanted any more.

/** An answer of a server that is of no use, or none at all. */
export class SourceError extends Error {
  constructor(message, { url, status, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SourceError';
    this.url = url;
    this.status = status;
  }
}

/** The source of whatever a file can be opened from. */
export function sourceOf(from, options = {}) {
  // By names, because each frame of a page has classes of its own.
  const kind = Object.prototype.toString.call(from).slice(8, -1);
  if (kind === 'String' || kind === 'URL') {
    const base = globalThis.location?.href;
    let url;
    try {
      url = new URL(from, base);
    } catch (cause) {
      throw new SourceError(`${from} is no URL`, { cause });
    }
    // Such URLs are of bytes in memory.
    const whole = options.ranges === false || url.protocol === 'blob:' || url.protocol === 'data:';
    return whole ? new WholeSource(url, options) : new UrlSource(url, options);
  }
  if (kind === 'Blob' || kind === 'File') return new BlobSource(from);
  if (kind === 'ArrayBuffer' || kind === 'SharedArrayBuffer') return new BytesSource(new Uint8Array(from));
  if (ArrayBuffer.isView(from)) {
    return new BytesSource(new Uint8Array(from.buffer, from.byteOffset, from.byteLength));
  }
  if (typeof from?.read === 'function' && typeof from?.readEnd === 'function') return from;
  throw new TypeError('a file is opened from a URL, a Blob, bytes, or a source with read and readEnd');
}

class BytesSource {
  isLocal = true;
  #bytes;
  constructor(bytes) {
    this.#bytes = bytes;
  }
  async readEnd(max) {
    const size = this.#bytes.length;
    return { bytes: this.#bytes.subarray(Math.max(0, size - max)), size };
  }
  async read(start, end) {
    return this.#bytes.subarray(start, end);
  }
}

class BlobSource {
  isLocal = true;
  #blob;
  constructor(blob) {
    this.#blob = blob;
  }
  async readEnd(max) {
    const { size } = this.#blob;
    return { bytes: await this.read(Math.max(0, size - max), size), size };
  }
  async read(start, end) {
    try {
      return new Uint8Array(await this.#blob.slice(start, end).arrayBuffer());
    } catch (cause) {
      // The browser says so if the file on the disk has changed.
      throw new SourceError(`the file cannot be read any more: ${cause.message}`, { cause });
    }
  }
}

class HttpSource {
  isLocal = false;
  constructor(url, { requestInit = {}, fetch = globalThis.fetch } = {}) {
    this.url = url.href;
    this.isElsewhere = globalThis.location !== undefined && globalThis.location.origin !== url.origin;
    this.requestInit = requestInit;
    // Called without `this`, as browsers ask for.
    this.fetchOf = (...given) => fetch(...given);
  }

  async request(method, range, signal) {
    const { headers: given, ...init } = this.requestInit;
    const headers = new Headers(given);
    // A range also keeps the browser from asking for a compressed answer.
    if (range) headers.set('Range', range);
    try {
      return await this.fetchOf(this.url, { ...init, method, headers, signal });
    } catch (cause) {
      if (signal?.aborted) throw cause;
      const why = this.isElsewhere
        ? `the server cannot be reached, or does not allow this page to read from it (CORS: ` +
          `Access-Control-Allow-Origin)`
        : 'the server cannot be reached';
      throw this.error(`${why}: ${cause.message}`, { cause });
    }
  }

  async body(response, signal) {
    try {
      return new Uint8Array(await response.arrayBuffer());
    } catch (cause) {
      if (signal?.aborted) throw cause;
      throw this.error(`the answer broke off: ${cause.message}`, { cause });
    }
  }

  status(response) {
    return this.error(`HTTP status ${response.status} ${response.statusText}`.trimEnd(), {
      status: response.status,
    });
  }

  error(what, more = {}) {
    return new SourceError(`${this.url}: ${what}`, { url: this.url, ...more });
  }
}

/** A file that is loaded whole, once. */
class WholeSource extends HttpSource {
  #bytes;
  async #whole(signal) {
    if (this.#bytes === undefined) {
      const response = await this.request('GET', undefined, signal);
      if (!response.ok) throw this.status(response);
      this.#bytes = await this.body(response, signal);
    }
    return this.#bytes;
  }
  async readEnd(max, signal) {
    const bytes = await this.#whole(signal);
    return { bytes: bytes.subarray(Math.max(0, bytes.length - max)), size: bytes.length };
  }
  async read(start, end, signal) {
    return (await this.#whole(signal)).subarray(start, end);
  }
}

/** A file of which ranges are requested. */
class UrlSource extends HttpSource {
  /** What tells one version of the file from another, as far as the server shows it. */
  #version;
  #size;

  async readEnd(max, signal) {
    // A range that counts from the end gives the size with the bytes; from another origin, it would
    // take a preflight.
    if (!this.isElsewhere && max > 0) {
      const end = await this.#end(max, signal);
      if (end !== undefined) return end;
    }
    const size = await this.#sizeOf(signal);
    return { bytes: await this.read(Math.max(0, size - max), size, signal), size };
  }

  async read(start, end, signal) {
    if (start === end) return new Uint8Array(0);
    const response = await this.request('GET', `bytes=${start}-${end - 1}`, signal);
    if (response.status === 200) throw await this.#ignored(response);
    if (response.status !== 206) throw await this.#refused(response);
    this.#check(response, start);
    const bytes = await this.body(response, signal);
    if (bytes.length !== end - start) {
      throw this.error(`${bytes.length} bytes came of the range ${start} to ${end}`);
    }
    return bytes;
  }

  /** The end of the file in one request, or nothing if the server knows no such ranges. */
  async #end(max, signal) {
    const response = await this.request('GET', `bytes=-${max}`, signal);
    if (response.status === 206) {
      const range = contentRange(response);
      if (range?.size === undefined) {
        await response.body?.cancel();
        return undefined;
      }
      this.#check(response, range.start);
      const bytes = await this.body(response, signal);
      if (bytes.length !== Math.min(max, range.size)) {
        throw this.error(`${bytes.length} bytes came of the last ${max} of ${range.size}`);
      }
      this.#size = range.size;
      return { bytes, size: range.size };
    }
    if (response.status === 200) {
      // Some servers answer so if the range is the whole file.
      const length = Number(response.headers.get('Content-Length') ?? NaN);
      if (!(length <= max)) throw await this.#ignored(response);
      this.#check(response);
      const bytes = await this.body(response, signal);
      this.#size = bytes.length;
      return { bytes, size: bytes.length };
    }
    await response.body?.cancel();
    if ([400, 405, 416, 501].includes(response.status)) return undefined;
    throw this.status(response);
  }

  /** The size by the headers alone. */
  async #sizeOf(signal) {
    if (this.#size !== undefined) return this.#size;
    let response = await this.request('HEAD', 'bytes=0-', signal);
    if ([400, 403, 405, 416, 501].includes(response.status)) {
      // A signed URL is for GET alone.
      response = await this.request('GET', 'bytes=0-', signal);
      await response.body?.cancel();
    }
    if (response.status === 416) return 0;
    if (!response.ok) throw this.status(response);
    this.#check(response);
    const length = response.headers.get('Content-Length');
    const size = contentRange(response)?.size ?? (length === null ? NaN : Number(length));
    if (!Number.isSafeInteger(size)) {
      throw this.error('the server does not say how long the file is (Content-Length)');
    }
    this.#size = size;
    return size;
  }

  /** Refuses an answer that is of another version of the file, or another range. */
  #check(response, start) {
    const range = contentRange(response);
    const version = {
      etag: response.headers.get('ETag') ?? undefined,
      modified: response.headers.get('Last-Modified') ?? undefined,
      size: range?.size,
    };
    const known = (this.#version ??= {});
    for (const [name, value] of Object.entries(version)) {
      if (value === undefined) continue;
      known[name] ??= value;
      if (known[name] !== value) {
        void response.body?.cancel();
        throw this.error(`the file was changed while it was read: ${name} was ${known[name]}, and is ${value}`);
      }
    }
    if (start !== undefined && range !== undefined && range.start !== start) {
      void response.body?.cancel();
      throw this.error(`bytes from ${range.start} came of a range from ${start}`);
    }
  }

  async #ignored(response) {
    await response.body?.cancel();
    return this.error(
      'the server ignores ranges (status 200 in place of 206); { ranges: false } loads the whole file',
      { status: response.status },
    );
  }

  async #refused(response) {
    await response.body?.cancel();
    if (response.status === 416) {
      return this.error('the file was changed while it was read: it has become shorter (status 416)', {
        status: 416,
      });
    }
    return this.status(response);
  }
}

/** What `Content-Range: bytes 0-9/100` says, if the server shows it to this page. */
function contentRange(response) {
  const text = response.headers.get('Content-Range');
  const found = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(text ?? '');
  if (found === null) return undefined;
  return { start: Number(found[1]), size: found[3] === '*' ? undefined : Number(found[3]) };
}
