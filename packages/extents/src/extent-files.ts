/** The disk of an extent node, passed in: files in one folder. Errors have the `code` of the operating system, such as ENOSPC or EIO. */

/** One file. Requests may be in flight side by side. */
export interface ExtentFile {
  /** Bytes of the file. */
  size(): Promise<number>;
  /** Up to `length` bytes at `offset`; fewer at the end of the file. */
  read(offset: number, length: number): Promise<Buffer>;
  /** Writes all of `bytes`, which must not change until then. A hole before them reads as zeros. */
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /** Makes everything durable that had been written before the call. After a failure nothing is known of it, and a second call proves nothing. */
  sync(): Promise<void>;
  /** Cuts the file. Durable with the next `sync`. */
  truncate(length: number): Promise<void>;
  /** Releases the file. */
  close(): Promise<void>;
}

/** A folder of files. */
export interface ExtentFiles {
  /** Names of all files. */
  list(): Promise<readonly string[]>;
  /** Makes an empty file whose name is durable. */
  create(name: string): Promise<ExtentFile>;
  /** Opens a file that is there. */
  open(name: string): Promise<ExtentFile>;
  /** Deletes a file, durably. */
  remove(name: string): Promise<void>;
  /** Bytes that can still be written. */
  freeBytes(): Promise<number>;
}
