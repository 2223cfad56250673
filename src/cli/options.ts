/**
 * Option values of all commands: each is a zod schema from text to the program's unit, and a parser for commander made of it. A refusal
 * says what is allowed.
 */

import { InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { nearestName } from '../core/did-you-mean.js';
import { parseCount, parseDurationNs, parseRateBps, parseSizeBytes } from '../core/units.js';
import { IpAddress } from '../packet/address.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import { MESSAGE_BYTES_MAX } from '../ring/work-queue.js';
import { parsedText } from '../schema/parsed-text.js';

/** What commander calls with the text of an option or argument. */
function parser<T>(schema: z.ZodType<T>): (text: string) => T {
  return (text) => {
    const result = schema.safeParse(text);
    if (!result.success) throw new InvalidArgumentError(`${result.error.issues[0].message}.`);
    return result.data;
  };
}

/** Text of another form, by a parser that throws RoceError. */
export function textOption<T>(parse: (text: string) => T): (text: string) => T {
  return parser(parsedText(parse));
}

const count = parsedText((text) => parseCount(text));

/** `4096`, `64KiB` -> bytes. */
export const sizeOption = parser(parsedText(parseSizeBytes));
/** The same, as far as one message goes (IBTA vol. 1 §9.7.7: 2^31 bytes). */
export const messageSizeOption = parser(
  parsedText(parseSizeBytes).refine((bytes) => bytes <= MESSAGE_BYTES_MAX, { error: 'a message has at most 2GiB' }),
);
/** `25Gbps` -> bits per second. */
export const rateOption = parser(parsedText(parseRateBps));
/** `67us` -> nanoseconds. */
export const durationOption = parser(parsedText(parseDurationNs));
/** The same, and not nothing. */
export const positiveDurationOption = parser(
  parsedText(parseDurationNs).refine((ns) => ns > 0, { error: 'a time above 0 is needed' }),
);
/** A time above nothing, in seconds where no unit is given: `3`, `3s`, `500ms` -> nanoseconds. */
export const secondsOption = (text: string): number =>
  positiveDurationOption(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text);
/** A number above 0, with or without a fraction. */
export const positiveNumberOption = parser(
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, { error: 'a number is needed, such as 1000 or 9.5' })
    .transform(Number)
    .refine((value) => value > 0, { error: 'a number above 0 is needed' }),
);
/** At least 1. */
export const countOption = parser(parsedText((text) => parseCount(text, 1)));
/** A whole number in [min, max]. */
export const rangeOption = (min: number, max: number) => parser(parsedText((text) => parseCount(text, min, max)));
/** TCP or UDP port. */
export const portOption = rangeOption(1, 65535);
/** The same, and 0, with which the system chooses. */
export const portOrAnyOption = rangeOption(0, 65535);
/** Queue pair number, decimal or `0x...`. */
export const qpnOption = rangeOption(0, 0xffffff);
/** A literal IPv4 or IPv6 address. */
export const addressOption = parser(parsedText((text) => IpAddress.parse(text)));
/** One of {@link PATH_MTUS}. */
export const mtuOption = Object.assign(
  parser(count.pipe(z.literal([...PATH_MTUS], { error: `the path MTU is one of ${PATH_MTUS.join(', ')}` }))),
  { choices: PATH_MTUS.map(String) },
);

/** An option whose default is written, and shown by --help, as one would type it. */
export function optionWithDefault(
  flags: string,
  description: string,
  parse: (text: string) => unknown,
  text: string,
): Option {
  return new Option(flags, description).argParser(parse).default(parse(text), text);
}

/** One of a few words. The parser carries them along, for the shell's completion. */
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

/** One or more of what `parse` takes, with commas between. */
export function listOption<T>(parse: (text: string) => T): (text: string) => T[] {
  return (text) => [...new Set(text.split(',').map((item) => parse(item.trim())))];
}

/** `--allow-host NAME`, which may be repeated. */
export function allowHostOption(): Option {
  return new Option(
    '--allow-host <name>',
    'a name by which browsers and scrapers may ask for what is served, beside addresses and localhost; may be repeated',
  ).argParser((name: string, before: readonly string[] = []) => [...before, name]);
}
