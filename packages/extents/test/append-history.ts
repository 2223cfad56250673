/**
 * A checker of histories of one stream: appends by one client after another, and reads of the whole stream. It knows
 * nothing of extents. An acknowledged append is visible once the next one was acknowledged; until then one read may have
 * it, and a later one lack it, because each replica learns by the next append that all have it.
 */

/** One call. Order of calls and returns in the whole history; a call without a return may have happened, or not. */
export interface StreamCall {
  readonly calledAt: number;
  readonly returnedAt: number | undefined;
}

export interface AppendCall extends StreamCall {
  readonly id: string;
}

export interface ReadCall extends StreamCall {
  /** What it returned, in order. */
  readonly ids: readonly string[];
}

/** What is wrong with a history; undefined: nothing. */
export function whyNotAppendOnly(appends: readonly AppendCall[], reads: readonly ReadCall[]): string | undefined {
  const known = new Map(appends.map((append) => [append.id, append]));
  const done = reads.filter(({ returnedAt }) => returnedAt !== undefined);
  for (const { ids, calledAt, returnedAt } of done) {
    if (new Set(ids).size < ids.length) return `a read returns a record twice: ${ids}`;
    const places = new Map(ids.map((id, place) => [id, place]));
    for (const id of ids) {
      const append = known.get(id);
      if (append === undefined) return `a read returns '${id}', which nobody appended`;
      if (append.calledAt > returnedAt!) return `a read returns '${id}' before it was appended`;
    }
    const before = appends.filter((append) => append.returnedAt !== undefined && append.returnedAt < calledAt);
    const newest = Math.max(0, ...before.map((append) => append.calledAt));
    for (const append of before)
      if (append.returnedAt! < newest && !places.has(append.id))
        return `a read lacks '${append.id}', which was acknowledged before`;
    for (const a of appends)
      for (const b of appends) {
        if (a.returnedAt === undefined || a.returnedAt > b.calledAt || !places.has(b.id)) continue;
        if (!places.has(a.id)) return `a read has '${b.id}', and lacks '${a.id}', which was acknowledged before it`;
        if (places.get(a.id)! > places.get(b.id)!) return `a read has '${b.id}' before '${a.id}'`;
      }
  }
  for (const first of done)
    for (const second of done) {
      const [short, long] = first.ids.length <= second.ids.length ? [first, second] : [second, first];
      if (short.ids.some((id, place) => long.ids[place] !== id)) return `reads differ: ${short.ids}; ${long.ids}`;
    }
  return undefined;
}
