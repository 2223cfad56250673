/** Operations of this process that were copies to and from mapped regions of local peers. */
export interface RegionCopies {
  /** WRITEs, READs and atomics. */
  readonly operations: number;
  /** Bytes that they copied. */
  readonly bytes: number;
}
