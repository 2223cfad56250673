export async function allOf(works: ReadonlyArray<Promise<void> | undefined>): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
