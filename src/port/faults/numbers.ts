export function integer(text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined || !/^(\d+|0x[0-9a-f]+)$/i.test(text)) return undefined;
  const value = Number(text);
  return value >= min && value <= max ? value : undefined;
}

/** A decimal or a fraction (`1/256`) in [0, 1]; undefined for anything else. */
export function probability(text: string | undefined): number | undefined {
  const parts = /^(\d*\.?\d+(?:e-?\d+)?)(?:\/(\d+))?$/i.exec(text ?? '');
  if (parts === null) return undefined;
  const value = Number(parts[1]) / Number(parts[2] ?? 1);
  return value >= 0 && value <= 1 ? value : undefined;
}
