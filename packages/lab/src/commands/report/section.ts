import type { ReportOrigin } from './origin.js';

export interface Section {
  readonly title: string;
  readonly body: readonly string[];
  readonly measures: readonly ReportMeasure[];
}

export interface ReportMeasure {
  readonly name: string;
  readonly value: number;
  readonly text: string;
}

export type SectionReader = (document: unknown) => Section | undefined;

export interface ReportEntry {
  readonly file: string;
  readonly section: Section | undefined;
  readonly origin: ReportOrigin;
}
