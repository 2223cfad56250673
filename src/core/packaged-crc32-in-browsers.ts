/** Browsers have no native CRC-32. */

export function packagedCrc32(): undefined {
  return undefined;
}
