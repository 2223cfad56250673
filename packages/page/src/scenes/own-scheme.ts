/** Runs code that registers a rate control or a recovery scheme, as modules of docs/extending.md do. */

import { createRateControl, NotificationPoint, RateControl, registerRateControl } from 'rocev2/congestion';
import { RECOVERY_API } from 'rocev2/internal/retransmit';
import type { OwnScheme } from './scene.js';

const FILE = 'own-scheme.js';
/** The lines that `Function` writes before the code. */
const LINES_BEFORE = 2;
const IMPORT = /^import\s*\{([^}]*)\}\s*from\s*['"]rocev2(?:\/congestion)?['"];?/gm;
/** No line of JavaScript has it outside comments and text. */
const IMPOSSIBLE = '\n#';
const OPEN_TEXT = /template|string literal|regular expression/i;

interface Definition {
  readonly name: string;
}

let loaded = 0;

/** Registers the scheme of the code, and returns the name under which it is known. Throws a message with the line. */
export function loadScheme({ kind, code }: OwnScheme): string {
  const names: string[] = [];
  const registering =
    <D extends Definition>(registered: OwnScheme['kind'], register: (definition: D) => void) =>
    (definition: D) => {
      if (registered !== kind) throw new Error(`this registers a ${registered}, and the scene compares a ${kind}`);
      const name = `own-${++loaded}`;
      register({ ...definition, name });
      names.push(name);
    };
  const api = {
    ...RECOVERY_API,
    RateControl,
    NotificationPoint,
    createRateControl,
    registerRateControl: registering('rate control', registerRateControl),
    registerRecovery: registering('recovery scheme', RECOVERY_API.registerRecovery),
  };
  const body = code.replace(IMPORT, (_, imported: string) => `const {${imported.replaceAll(' as ', ': ')}} = rocev2;`);
  compiled(body)(api);
  const name = names.at(-1);
  if (name === undefined) throw new Error(`the code registers no ${kind}`);
  return name;
}

/** The message of an error, with the line of the code where it happened. */
export function messageWithLine(error: unknown): string {
  const { message, stack = '' } = error as Error;
  const [, line] = new RegExp(`${FILE}:(\\d+)`).exec(stack) ?? [];
  return line === undefined ? message : `line ${Number(line) - LINES_BEFORE}: ${message}`;
}

function compiled(body: string): (api: object) => void {
  try {
    return new Function('rocev2', `"use strict"; ${body}\n//# sourceURL=${FILE}`) as (api: object) => void;
  } catch (error) {
    const line = lineOfSyntaxError(body);
    throw new Error(line === undefined ? messageOf(error) : `line ${line}: ${messageOf(error)}`);
  }
}

/** Engines do not tell it. The first lines up to the error are at fault only because of what follows them. */
function lineOfSyntaxError(body: string): number | undefined {
  const lines = body.split('\n');
  const errorOf = (count: number) => {
    try {
      new Function('rocev2', `"use strict"; ${lines.slice(0, count).join('\n')}${IMPOSSIBLE}`);
      return '';
    } catch (error) {
      return messageOf(error);
    }
  };
  const usual = errorOf(0);
  const found = lines.findIndex((_, i) => {
    const message = errorOf(i + 1);
    return message !== usual && !OPEN_TEXT.test(message);
  });
  return found < 0 ? undefined : found + 1;
}

function messageOf(error: unknown): string {
  return (error as Error).message;
}
