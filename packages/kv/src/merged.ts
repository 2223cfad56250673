/** Iterators that wait for a value still wait afterwards: their creator has to end them. */
export async function* merged<T>(
  sources: ReadonlyArray<AsyncIterator<T, unknown, undefined>>,
): AsyncGenerator<T, void, undefined> {
  const ready: Array<{ readonly source: AsyncIterator<T>; readonly result: IteratorResult<T> }> = [];
  let failure: { readonly error: unknown } | undefined;
  let wake = () => {};
  const ask = async (source: AsyncIterator<T>) => {
    try {
      ready.push({ source, result: await source.next() });
    } catch (error) {
      failure ??= { error };
    }
    wake();
  };
  for (const source of sources) void ask(source);
  for (;;) {
    if (failure !== undefined) throw failure.error;
    const next = ready.shift();
    if (next === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    if (next.result.done === true) return;
    yield next.result.value;
    void ask(next.source);
  }
}
