import { Controller, Get } from '@nestjs/common';
import { Database } from './database.js';

@Controller('health')
export class HealthController {
  constructor(private readonly database: Database) {}

  @Get()
  async check(): Promise<{ status: 'ok' }> {
    await this.database.query('select 1');
    return { status: 'ok' };
  }
}
