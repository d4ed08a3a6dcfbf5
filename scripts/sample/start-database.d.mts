export interface Database {
  url: string;
  embedded: boolean;
  crashed: Promise<never>;
  stop(): Promise<void>;
}
export function startDatabase(options?: { acceptUrl?: boolean }): Promise<Database>;
