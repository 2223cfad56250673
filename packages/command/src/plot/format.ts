const RATE_UNITS = ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s'];
const TIME_UNITS = ['ns', 'us', 'ms', 's'];
const BYTE_UNITS = ['B', 'KB', 'MB', 'GB'];
const COUNT_UNITS = ['', ' k', ' M', ' G'];

export function formatRate(bps: number): string {
  return scaled(
    bps,
    RATE_UNITS.map((unit) => ` ${unit}`),
  );
}

export function formatNs(ns: number): string {
  return scaled(
    ns,
    TIME_UNITS.map((unit) => ` ${unit}`),
  );
}

export function formatBytes(bytes: number): string {
  return scaled(
    bytes,
    BYTE_UNITS.map((unit) => ` ${unit}`),
  );
}

export function formatByteRate(bps: number): string {
  return `${formatBytes(bps / 8)}/s`;
}

export function formatPerSecond(value: number): string {
  return `${formatCount(value)}/s`;
}

export function formatCount(count: number): string {
  return scaled(count, COUNT_UNITS);
}

export function formatCounted(count: number, noun: string, unit = ''): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}${unit}`;
}

export function formatShare(share: number): string {
  return `${threeDigits(share * 100)} %`;
}

export function formatClock(ns: number): string {
  const seconds = Math.floor(ns / 1e9);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function scaled(value: number, units: readonly string[]): string {
  let rest = value;
  let unit = 0;
  while (unit < units.length - 1 && Math.abs(rest) >= 999.5) {
    rest /= 1000;
    unit++;
  }
  return `${unit === 0 && Number.isInteger(rest) ? rest : threeDigits(rest)}${units[unit]}`;
}

function threeDigits(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return '0';
  if (magnitude >= 99.95) return value.toFixed(0);
  return value.toFixed(magnitude >= 9.995 ? 1 : 2);
}
