/** Values of parameters as numbers. */

export function bytesOf(size: string): number {
  const [count, unit] = size.split(' ');
  return Number(count) * (unit === 'MiB' ? 2 ** 20 : 2 ** 10);
}

const NS = { us: 1e3, ms: 1e6 } as const;

export function nsOf(time: string): number {
  const [count, unit] = time.split(' ');
  return Number(count) * NS[unit as keyof typeof NS];
}
