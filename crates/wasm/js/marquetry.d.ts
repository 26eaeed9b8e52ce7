/** Ranges of the bytes of a file. */
export interface Source {
  /** The last `max` bytes of the file, or all if it has fewer, and its size. */
  readEnd(max: number, signal: AbortSignal): Promise<{ bytes: Uint8Array; size: number }>;
  /** All bytes from `start` to before `end`. */
  read(start: number, end: number, signal: AbortSignal): Promise<Uint8Array>;
  /** Whether requests take no time, so that none are joined. */
  readonly isLocal?: boolean;
}

/** An AES key: its 16, 24 or 32 bytes, or their hexadecimal digits. */
export type Key = Uint8Array | string;

/** What opens an encrypted file, and what is read of it though it is not protected. */
export interface Decryption {
  /** The key of the footer, and of columns that have none of their own. */
  footerKey?: Key;
  /** Keys by the dotted paths of columns, or of fields, for all columns below them. */
  columnKeys?: Record<string, Key>;
  /** The AAD prefix, which identifies the file, if the file does not store it. A string is UTF-8. */
  aadPrefix?: Uint8Array | string;
  /**
   * Finds keys that are not given here, when the file is opened: of a column by its dotted path, of the footer by
   * `undefined`, with the key metadata of the file. Without a key (`undefined`), the column cannot be read, and others can.
   */
  retriever?: (column: string | undefined, keyMetadata: Uint8Array | undefined) => Key | undefined | Promise<Key | undefined>;
  /** Files that are not encrypted are read, too. Default: they are an error, because they may have replaced encrypted ones. */
  plaintextFiles?: boolean;
  /** Footers in plain text are read without their signature being verified, where the footer's key is not known. */
  unverifiedFooters?: boolean;
  /** Pages that are not authenticated are read: AES_GCM_CTR_V1 with an encrypted footer. */
  unauthenticatedPages?: boolean;
}

export interface OpenOptions {
  /** For encrypted files. */
  decryption?: Decryption;
  /** Memory that a read may take, in bytes. Default 1 GiB; WebAssembly has 4 GiB in all. */
  memory?: number;
  /** Unit of INT96 timestamps. Default nanoseconds, which end in the year 2262. */
  int96?: 'ns' | 'us' | 'ms';
  /** The name that is shown. Default: that of the URL or of the file. */
  name?: string;
  /** `false`: loads the whole file at once, from a server that knows no ranges. */
  ranges?: boolean;
  /** For every request: headers, credentials, and so on. */
  requestInit?: RequestInit;
  /** In place of the browser's. */
  fetch?: typeof fetch;
}

export interface ReadOptions {
  /** Names of columns, nested ones with dots. Default: all. */
  columns?: string[];
  /** A condition, as `marq --where` has it: `fare > 10 and vendor in ('a', 'b')`. */
  where?: string;
  /** Rows at most. */
  limit?: number;
  /** Rows that are left out at the start, of those that meet the condition. */
  offset?: number;
  /** Rows of a batch at most. */
  batchRows?: number;
}

/** A leaf of the schema of Parquet. */
export interface Leaf {
  path: string[];
  /** The type with its annotation, as text: `int64 (TIMESTAMP(MICROS,true))`. */
  type: string;
  physical: string | null;
  logical: string | null;
  converted: string | null;
  repetition: string | null;
  field_id: number | null;
  max_definition_level: number;
  max_repetition_level: number;
}

/** A field of the batches. */
export interface Field {
  name: string;
  type: string;
  nullable: boolean;
  metadata: Record<string, string>;
  children?: Field[];
}

/** Facts of the footer, under the names that `marq info -f json` has. */
export interface Info {
  file: string;
  file_bytes: number;
  rows: number;
  /** Leaves. */
  columns: number;
  row_groups: number;
  row_group_rows: number[];
  created_by: string | null;
  version: number;
  bytes: {
    data_pages: number;
    dictionary_pages: number;
    page_index: number;
    bloom_filters: number;
    footer: number;
    other: number;
  };
  uncompressed_bytes: number;
  /** Compressed bytes by codec. */
  codecs: Record<string, number>;
  /** Column chunks by the encoding of most of their pages. */
  encodings: Record<string, number>;
  encrypted_chunks: number;
  column_orders: number | null;
  key_values: string[];
}

export type ErrorKind =
  | 'Io'
  | 'Malformed'
  | 'Unsupported'
  | 'Limit'
  | 'FeatureDisabled'
  | 'Crypto'
  | 'Arrow'
  | 'Usage'
  | 'Cancelled'
  | 'Internal';

/** An error of a file, of a read, or of what was asked for. `cause` is what a source threw. */
export class ParquetError extends Error {
  private constructor();
  readonly kind: ErrorKind;
  readonly rowGroup?: number;
  readonly column?: string;
  readonly page?: number;
  readonly offset?: number;
}

/** An answer of a server that is of no use, or none at all. */
export class SourceError extends Error {
  private constructor();
  readonly url?: string;
  /** The HTTP status, if there was an answer. */
  readonly status?: number;
}

/**
 * Loads the WebAssembly from where this package is, or from what is given. `ParquetFile.open` does
 * so by itself; outside of browsers, where `fetch` reads no files, give the bytes.
 */
export function init(wasm?: BufferSource | WebAssembly.Module | Response | URL | string | Promise<Response>): Promise<void>;

/** An open Parquet file. Numbers beyond 2^53 lose their last digits. */
export class ParquetFile {
  private constructor();
  static open(from: string | URL | Blob | ArrayBuffer | ArrayBufferView | Source, options?: OpenOptions): Promise<ParquetFile>;
  readonly name: string;
  readonly numRows: number;
  schema(): { leaves: Leaf[]; arrow: Field[] };
  info(): Info;
  /** The value of a key of the footer. */
  keyValue(key: string): string | undefined;
  /** A picture of the layout, as SVG. */
  map(): string;
  /** Each batch as an Arrow IPC stream of its own. Leaving the loop ends the requests. */
  read(options?: ReadOptions): AsyncGenerator<Uint8Array, void, void>;
  /** All batches as one Arrow IPC stream. */
  readAll(options?: ReadOptions): Promise<Uint8Array>;
  /** Each batch as rows of text for people: the start of long values, null for nulls. */
  readText(options?: ReadOptions): AsyncGenerator<(string | null)[][], void, void>;
  /** Counts the rows that meet a condition; without one, the footer knows. */
  count(where?: string): Promise<number>;
  /** Gives the memory back; the file cannot be used any more. */
  close(): void;
}
