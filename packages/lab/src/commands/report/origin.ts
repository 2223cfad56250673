import { escapeXml } from '@rocev2/command/plot';
import { z } from 'zod';

const headSchema = z.looseObject({
  command: z.string().optional().catch(undefined),
  start: z.string().optional().catch(undefined),
  toolVersion: z.string().optional().catch(undefined),
  node: z.string().optional().catch(undefined),
  host: z
    .looseObject({ cores: z.number(), cpu: z.string(), node: z.string(), platform: z.string(), arch: z.string() })
    .partial()
    .optional()
    .catch(undefined),
});

const HEAD_FIELDS = new Set(['schema', 'schemaVersion', 'toolVersion', 'command', 'host', 'start', 'end']);

export type ReportOrigin = ReadonlyMap<'command' | 'date' | 'versions' | 'machine', string>;

export function originOf(document: unknown): ReportOrigin {
  const { data } = headSchema.safeParse(document);
  if (data === undefined) return new Map();
  const { command, start, toolVersion, host } = data;
  const node = host?.node ?? data.node;
  const processor = [host?.cores && `${host.cores} cores`, host?.cpu, host?.platform, host?.arch];
  const facts = [
    ['command', command],
    ['date', start === undefined ? undefined : readableDate(start)],
    ['versions', joined([toolVersion && `rocev2 ${toolVersion}`, node && `Node.js ${node.replace(/^v/, '')}`])],
    ['machine', joined(processor)],
  ] as const;
  return new Map(facts.flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const])));
}

export function withoutHead(document: unknown): unknown {
  if (document === null || typeof document !== 'object' || !('schemaVersion' in document)) return document;
  return Object.fromEntries(Object.entries(document).filter(([name]) => !HEAD_FIELDS.has(name)));
}

export function originLine(origin: ReportOrigin): string {
  if (origin.size === 0) return '';
  const parts = [...origin].map(([name, text]) =>
    name === 'command' ? `<code>${escapeXml(text)}</code>` : escapeXml(text),
  );
  return `<p class="origin">${parts.join('<br>')}</p>`;
}

export function readableDate(text: string): string {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text;
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

function joined(parts: readonly (string | number | undefined)[]): string | undefined {
  const said = parts.filter((part) => part !== undefined && part !== '' && part !== 0);
  return said.length === 0 ? undefined : said.join(', ');
}
