// @ts-check
/** What all stores hold: each value says which key it is of. */

export const keyFor = (/** @type {number} */ index) => `key:${index}`;

export function valueFor(/** @type {number} */ index, /** @type {number} */ bytes) {
  const value = Buffer.alloc(bytes, index % 251);
  value.writeUInt32LE(index);
  return value;
}

/** Throws where a value is that of another key. */
export function check(
  /** @type {number} */ index,
  /** @type {number} */ bytes,
  /** @type {Uint8Array | undefined | null} */ value,
) {
  if (value?.length !== bytes) throw new Error(`the value of ${keyFor(index)} has ${value?.length} bytes`);
  const found = value[0] | (value[1] << 8) | (value[2] << 16) | (value[3] << 24);
  if (found !== index) throw new Error(`the value of ${keyFor(index)} is that of ${keyFor(found)}`);
}
