import type { Origin } from './origin.js';

export interface Section {
  readonly title: string;
  readonly body: readonly string[];
  readonly measures: readonly Measure[];
}

export interface Measure {
  readonly name: string;
  readonly value: number;
  readonly text: string;
}

export type SectionReader = (document: unknown) => Section | undefined;

export interface ReportEntry {
  readonly file: string;
  readonly section: Section | undefined;
  readonly origin: Origin;
}
