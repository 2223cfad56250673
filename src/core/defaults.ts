/** Options that are undefined have their defaults, as options that are absent. */

/** Some of the fields of `T`; undefined means the default, also under `exactOptionalPropertyTypes`. */
export type Optional<T> = { [K in keyof T]?: T[K] | undefined };

/** Every field of `T`, with a value. */
export type Complete<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> };

type WithDefaults<D, T> = Omit<T, keyof D> & {
  [K in keyof D]: K extends keyof T ? Exclude<T[K], undefined> : D[K];
};

/** The fields of `given` that have a value, and `defaults` for the others. */
export function withDefaults<D extends object, T extends object>(defaults: D, given: T): WithDefaults<D, T> {
  const values: Record<string, unknown> = Object.fromEntries(Object.entries(defaults));
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) values[name] = value;
  }
  return values as WithDefaults<D, T>;
}
