/** Memory of a program, by one system call for each access. False: not all of it can be accessed. */
export interface AddressSpace {
  read(address: number, length: number, to: Uint8Array, toOffset: number): boolean;
  write(address: number, from: Uint8Array, fromOffset: number, length: number): boolean;
  close(): void;
}
