/**
 * Thread-local singletons: values of which a thread has one, however many copies of this code it loads: the package as
 * Node loads it, its modules under a command, a bundle of a user. An extension that registers a scheme with one copy is
 * then known to the others.
 */

/** Goes up when copies of different versions could no longer use each other's values. */
const FORM = 1;

export function threadLocalSingleton<T>(name: string, make: () => T): T {
  const values = globalThis as { [key: symbol]: unknown };
  const key = Symbol.for(`rocev2/${FORM}/${name}`);
  values[key] ??= make();
  return values[key] as T;
}
