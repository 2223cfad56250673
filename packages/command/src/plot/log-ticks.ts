const TICK_STEPS = [1, 2, 5];
const TICKS_MAX = 7;

/** 1, 2 and 5 of each decade, or fewer of them where there is no room; at least the ends. */
export function logTicks(from: number, to: number): number[] {
  const decades = Array.from({ length: Math.floor(Math.log10(to)) - Math.floor(Math.log10(from)) + 1 }, (_, i) => {
    return 10 ** (Math.floor(Math.log10(from)) + i);
  });
  const within = (steps: readonly number[]) =>
    decades.flatMap((decade) => steps.map((step) => step * decade)).filter((tick) => tick >= from && tick <= to);
  const [fine, coarse] = [within(TICK_STEPS), within([1])];
  if (fine.length < 2) return [from, to];
  return fine.length <= TICKS_MAX || coarse.length < 2 ? fine : coarse;
}
