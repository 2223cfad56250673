/**
 * Thread-local singletons: a thread has one value, even if it loads several copies of this code: the package as Node
 * loads it, its modules under a command, a bundle of a user. So a scheme that an extension registers with one copy is
 * known to the others.
 */

/** Goes up when copies of different versions could no longer use each other's values. */
const FORM = 1;

export function threadLocalSingleton<T>(name: string, make: () => T): T {
  const values = globalThis as { [key: symbol]: unknown };
  const key = Symbol.for(`rocev2/${FORM}/${name}`);
  values[key] ??= make();
  return values[key] as T;
}
