import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Pool } from 'pg';

/** The one way to the database: ten connections an instance. */
@Injectable()
export class Database implements OnApplicationShutdown {
  readonly #pool: Pool;
  #ended: Promise<void> | undefined;

  constructor() {
    const connectionString = process.env['DATABASE_URL'];
    if (!connectionString) throw new Error('DATABASE_URL is not set. `npm start` sets it, to an embedded database.');
    this.#pool = new Pool({ connectionString, max: 10 });
    // Without a listener, a connection that breaks while nobody uses it ends the process.
    this.#pool.on('error', (error) => new Logger(Database.name).warn(`A connection was lost: ${error.message}`));
  }

  async query<Row extends object>(sql: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    const { rows } = await this.#pool.query<Row>(sql, [...parameters]);
    return rows;
  }

  onApplicationShutdown(): Promise<void> {
    this.#ended ??= this.#pool.end();
    return this.#ended;
  }
}
