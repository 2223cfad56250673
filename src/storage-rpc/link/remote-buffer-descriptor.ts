/** Memory of the peer for an RDMA READ or WRITE. */
export interface RemoteBufferDescriptor {
  readonly addr: bigint;
  readonly rkey: number;
  /** Bytes. */
  readonly length: number;
}

export const NO_REMOTE_BUFFER: RemoteBufferDescriptor = { addr: 0n, rkey: 0, length: 0 };
