/** Long requests in pieces that what lies below can take. */

/** Does all pieces at once; `at` says where in the whole a piece begins. Settles when the last has, so that the bytes are then free. */
export async function inPieces(
  bytes: Uint8Array,
  pieceBytes: number,
  work: (piece: Uint8Array, at: number) => Promise<void>,
): Promise<void> {
  if (bytes.length <= pieceBytes) return work(bytes, 0);
  const works: Promise<void>[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) works.push(work(bytes.subarray(at, at + pieceBytes), at));
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}
