/** Memory of the other side, as a message describes it: what an RDMA READ or WRITE needs to know. */
export interface RemoteBuffer {
  /** Virtual address at the other side. */
  readonly addr: bigint;
  /** Its key. */
  readonly rkey: number;
  /** Bytes. */
  readonly length: number;
}

/** No memory is described. */
export const NO_REMOTE_BUFFER: RemoteBuffer = { addr: 0n, rkey: 0, length: 0 };
