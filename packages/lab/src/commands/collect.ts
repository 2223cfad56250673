/** Parser of an option that may be repeated: all of its values, in order. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
