/** What documents name exists: linked files and headings, npm scripts, commands and options of `rocev2`. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../packages/cli/src/commands.js';
import { completableCommands } from '../../packages/cli/src/completion/model.js';
import { wholeProgram } from '../../packages/cli/src/run.js';
import { run, silentIo } from '../../packages/cli/test/run-in-process.js';
import { secondsOption } from '../../packages/command/src/options.js';
import { commandLines, isSynopsis, unmarkedRemarks } from './command-lines.js';
import { parseMarkdown } from './markdown.js';

/** Made by `npm run docs:api`, with copies of pages that link elsewhere from there. */
const GENERATED = join('docs', 'api');

const files = [
  ...readdirSync('.'),
  ...['docs', 'test', 'src', 'packages'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  ),
].filter((path) => path.endsWith('.md') && !path.includes('node_modules') && !path.startsWith(GENERATED));
const pages = new Map(files.map((file) => [file, parseMarkdown(readFileSync(file, 'utf8'))]));
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };

/** The command that the first words name, and the words behind them. */
function commandOf(program: Command, words: readonly string[]): { command: Command; rest: readonly string[] } {
  let command = program;
  let at = 0;
  for (; at < words.length && command.commands.length > 0; at++) {
    const names = words[at].split('|');
    if (names[0].startsWith('-') || names[0] === 'help') break;
    const found = names.map((name) => command.commands.find((child) => child.name() === name));
    if (found.includes(undefined)) throw new Error(`'${words.join(' ')}': there is no '${words[at]}'`);
    command = found[0]!;
  }
  return { command, rest: words.slice(at) };
}

/** Why the command line would be refused; undefined when it would not. One that is only `mentioned` may lack its arguments. */
async function refusal(words: readonly string[], mentioned = false): Promise<string | undefined> {
  let complaint = '';
  const program = await wholeProgram(
    COMMANDS,
    silentIo((text) => {
      complaint += text;
    }),
  );
  try {
    const { command, rest } = commandOf(program, words);
    const known = new Set([
      '-h',
      '--help',
      '--help-all',
      ...command.options.flatMap(({ short, long }) => [short, long]),
    ]);
    // What follows belongs to another program.
    const end = rest.indexOf('--');
    for (const word of end < 0 ? rest : rest.slice(0, end)) {
      const option = /^\[*(--?[a-zA-Z][a-z_-]*)/.exec(word)?.[1];
      if (option !== undefined && !known.has(option)) return `'${command.name()}' has no ${option}`;
    }
    // What an extension registers is not known here: test/extending runs those.
    if (words.includes('--extension')) return undefined;
    if (mentioned || isSynopsis(words) || words.includes('help') || words.includes('--help') || rest.length === 0)
      return undefined;
    command.action(() => {});
    await program.parseAsync([...words], { from: 'user' });
    return undefined;
  } catch (error) {
    return complaint || String(error);
  }
}

describe.each(files)('%s', (file) => {
  const { links, blocks, spans } = pages.get(file)!;

  it('links to what is there', () => {
    const dead = links.filter((target) => {
      if (/^[a-z]+:/.test(target)) return false;
      const [path, anchor] = target.split('#');
      const linked = path === '' ? file : join(dirname(file), path);
      return !existsSync(linked) || (anchor !== undefined && pages.get(linked)?.anchors.has(anchor) !== true);
    });
    expect(dead).toEqual([]);
  });

  it('names npm scripts and files that exist', () => {
    const text = [...blocks, ...spans].join('\n');
    const named = [...text.matchAll(/npm run (?:-s |--silent )?([a-z:-]+)/g)].map(([, script]) => script);
    expect(named.filter((script) => !(script in scripts))).toEqual([]);
    const run = [...text.matchAll(/node ((?:examples|bench|scripts)\/[\w./-]+)/g)].map(([, path]) => path);
    const sources = spans.filter(
      (span) =>
        /^(?:src|test|packages|bench|scripts|examples|docs)\/[\w./-]+\.\w+$/.test(span) && !/\b(?:NAME|X)\b/.test(span),
    );
    // NAME and X stand for any. A document of a package may name its own files from the folder of the package.
    const home = /^packages\/[^/]+/.exec(file)?.[0] ?? '.';
    expect([...run, ...sources].filter((path) => !existsSync(path) && !existsSync(join(home, path)))).toEqual([]);
  });

  it('shows commands that would be accepted', async () => {
    expect(blocks.flatMap(unmarkedRemarks)).toEqual([]);
    for (const words of blocks.flatMap(commandLines)) {
      expect(await refusal(words), `rocev2 ${words.join(' ')}`).toBeUndefined();
    }
    for (const words of spans.flatMap(commandLines)) {
      expect(await refusal(words, true), `rocev2 ${words.join(' ')}`).toBeUndefined();
    }
  });
});

const helpPages = completableCommands(
  await wholeProgram(
    COMMANDS,
    silentIo(() => {}),
  ),
)
  .map(({ path }) => path.join(' '))
  .filter((path) => path !== '');

describe.each(helpPages)('rocev2 %s --help', (path) => {
  it('shows examples that would be accepted', async () => {
    const { stdout } = await run([...path.split(' '), '--help']);
    const text = stdout.slice(stdout.indexOf('\nExamples:'));
    expect(unmarkedRemarks(text)).toEqual([]);
    const examples = commandLines(text);
    expect(examples.length).toBeGreaterThan(0);
    for (const words of examples) expect(await refusal(words), `rocev2 ${words.join(' ')}`).toBeUndefined();
  });

  it('fits a terminal of 80 columns, but for examples, which can be copied only whole', async () => {
    const { stdout } = await run([...path.split(' '), '--help-all']);
    const lines = stdout.slice(0, stdout.indexOf('\nExamples:')).split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  it('shows choices and defaults in one notation, and defaults as one would type them', async () => {
    const { stdout } = await run([...path.split(' '), '--help-all']);
    expect(stdout).not.toMatch(/\((?:choices|preset):|\(default(?!:)|\(default:\s(?:\d{6,}|[["'])/);
  });
});

describe('the check itself', () => {
  it('finds what is wrong', async () => {
    expect(await refusal(['bw', 'write', '--sise', '4MiB'])).toMatch(/no --sise/);
    expect(await refusal(['bw', 'write', '-s', '4MoB'])).toMatch(/4MoB/);
    expect(await refusal(['sim', 'walk', 'pfc-n2'])).toMatch(/no 'walk'/);
    expect(await refusal(['bw', 'write', '[-s', 'SIZE]'])).toBeUndefined();
  });

  it('finds remarks that look like arguments', () => {
    expect(unmarkedRemarks('  rocev2 window    asking first\n  rocev2 window    # asking first')).toHaveLength(1);
  });

  it('reads documents', () => {
    const { blocks, spans, links, anchors } = parseMarkdown(
      '# A b: c\n\n    $ x\n\n```\n[no](link)\n```\n[a](b.md#c) `npm\nrun y`',
    );
    expect(blocks.map((text) => text.trim())).toEqual(['[no](link)', '$ x']);
    expect(spans).toEqual(['npm run y']);
    expect(links).toEqual(['b.md#c']);
    expect([...anchors]).toEqual(['a-b-c']);
  });

  it('reads command lines', () => {
    expect(commandLines('$ npx rocev2 bw write -n 5 | cat   remark\n# rocev2 sim list\nrocev2 is fine')).toEqual([
      ['bw', 'write', '-n', '5'],
      ['sim', 'list'],
      ['is', 'fine'],
    ]);
  });
});

describe('numbers that --help shows as defaults', () => {
  const optionsOf = (command: Command): Option[] => [...command.options, ...command.commands.flatMap(optionsOf)];
  /** Whether somebody who types what --help shows gets what the program takes without it. */
  const isAsShown = ({ parseArg, defaultValue, defaultValueDescription: shown = String(defaultValue) }: Option) =>
    parseArg!(shown, undefined) === defaultValue;

  it('are those that the commands take, in the unit of the option', async () => {
    const options = optionsOf(
      await wholeProgram(
        COMMANDS,
        silentIo(() => {}),
      ),
    ).filter(({ parseArg, defaultValue }) => parseArg !== undefined && typeof defaultValue === 'number');
    expect(options.length).toBeGreaterThan(50);
    expect(options.filter((option) => !isAsShown(option)).map(({ flags }) => flags)).toEqual([]);
  });

  it('are found where they are in another unit', () => {
    expect(isAsShown(new Option('-D, --duration <seconds>').argParser(secondsOption).default(5))).toBe(false);
  });
});
