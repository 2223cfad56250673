/** Works that go on side by side over the same buffers. */

/** Waits for all, and rejects with the first error after that: buffers are free then. */
export async function allOf(works: ReadonlyArray<Promise<void> | undefined>): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
