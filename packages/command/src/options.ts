import { InvalidArgumentError, Option } from 'commander';
import { NS_PER_S, nearestName, parseCount, parseDurationNs, parseRateBps, parseSizeBytes } from 'rocev2/internal/core';
import { MESSAGE_BYTES_MAX } from 'rocev2/internal/memory';
import { IpAddress, PATH_MTUS } from 'rocev2/internal/packet';
import { z } from 'zod';
import { parsedText } from './schema/parsed-text.js';

function parser<T>(schema: z.ZodType<T>): (text: string) => T {
  return (text) => {
    const result = schema.safeParse(text);
    if (!result.success) throw new InvalidArgumentError(`${result.error.issues[0].message}.`);
    return result.data;
  };
}

export function textOption<T>(parse: (text: string) => T): (text: string) => T {
  return parser(parsedText(parse));
}

const count = parsedText((text) => parseCount(text));

export const sizeOption = parser(parsedText(parseSizeBytes));
export const messageSizeOption = parser(
  parsedText(parseSizeBytes).refine((bytes) => bytes <= MESSAGE_BYTES_MAX, {
    error: 'a message can have at most 2GiB',
  }),
);
/** `25Gbps` -> bits per second. */
export const rateOption = parser(parsedText(parseRateBps));
/** `67us` -> nanoseconds. */
export const durationOption = parser(parsedText(parseDurationNs));
export const positiveDurationOption = parser(
  parsedText(parseDurationNs).refine((ns) => ns > 0, { error: 'the time must be above 0' }),
);
export const secondsOption = (text: string): number =>
  positiveDurationOption(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text);
export const secondsUpToOption =
  (maxSeconds: number) =>
  (text: string): number => {
    const ns = secondsOption(text);
    if (ns > maxSeconds * NS_PER_S) throw new InvalidArgumentError(`the time can be at most ${maxSeconds}s.`);
    return ns;
  };
export const positiveNumberOption = parser(
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, { error: 'write a number, such as 1000 or 9.5' })
    .transform(Number)
    .refine((value) => value > 0, { error: 'the number must be above 0' }),
);
export const countOption = parser(parsedText((text) => parseCount(text, 1)));
export const rangeOption = (min: number, max: number) => parser(parsedText((text) => parseCount(text, min, max)));
export const portOption = rangeOption(1, 65535);
export const portOrAnyOption = rangeOption(0, 65535);
export const qpnOption = rangeOption(0, 0xffffff);
export const addressOption = parser(parsedText((text) => IpAddress.parse(text)));
export const mtuOption = Object.assign(
  parser(count.pipe(z.literal([...PATH_MTUS], { error: `the path MTU is one of ${PATH_MTUS.join(', ')}` }))),
  { choices: PATH_MTUS.map(String) },
);

export function optionWithDefault(
  flags: string,
  description: string,
  parse: (text: string) => unknown,
  text: string,
): Option {
  return new Option(flags, description).argParser(parse).default(parse(text), text);
}

/** `a, b or c`: in the description of an option with one of these values. */
export function alternatives(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

export function choiceOption<const T extends string>(
  choices: readonly T[],
): ((text: string) => T) & { readonly choices: readonly T[] } {
  const words = z.enum(choices as readonly [T, ...T[]], {
    error: ({ input }) => {
      const meant = nearestName(String(input), choices);
      const question = meant === undefined ? '' : ` (did you mean ${meant}?)`;
      return `it is one of ${choices.join(', ')}${question}`;
    },
  });
  return Object.assign(parser(words as z.ZodType<T>), { choices });
}

export function listOption<T>(parse: (text: string) => T): (text: string) => T[] {
  return (text) => [...new Set(text.split(',').map((item) => parse(item.trim())))];
}

export function allowHostOption(): Option {
  return new Option(
    '--allow-host <name>',
    'also accept HTTP requests for this host name, in addition to addresses and localhost; may be repeated',
  ).argParser((name: string, before: readonly string[] = []) => [...before, name]);
}
