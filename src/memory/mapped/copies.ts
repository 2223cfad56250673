/** Operations of this process that were copies to and from mapped regions of local peers. */
export interface Copies {
  /** WRITEs, READs and atomics. */
  readonly operations: number;
  /** Bytes that they copied. */
  readonly bytes: number;
}
