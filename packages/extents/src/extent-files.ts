/** Errors have the `code` of the operating system, such as ENOSPC or EIO. */

/** Requests may run concurrently. */
export interface ExtentFile {
  size(): Promise<number>;
  /** Up to `length` bytes at `offset`; fewer at the end of the file. */
  read(offset: number, length: number): Promise<Buffer>;
  /** A hole before them reads as zeros. */
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /**
   * Makes everything durable that had been written before the call. After a failure nothing is known of it, and a
   * second call proves nothing.
   */
  sync(): Promise<void>;
  /** Durable with the next `sync`. */
  truncate(length: number): Promise<void>;
  close(): Promise<void>;
}

export interface ExtentFiles {
  list(): Promise<readonly string[]>;
  create(name: string): Promise<ExtentFile>;
  open(name: string): Promise<ExtentFile>;
  remove(name: string): Promise<void>;
  /** A closed file gets another name; one that has that name is replaced. */
  rename(name: string, to: string): Promise<void>;
  freeBytes(): Promise<number>;
}
