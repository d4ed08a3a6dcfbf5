import { Controller, Delete, Get, ParseIntPipe, Post, Query } from '@nestjs/common';
import { CacheResponse } from 'nestjs-stampede-cache';
import { type Report, ReportsService } from './reports.service.js';

@Controller('reports')
export class ReportsController {
  constructor(private readonly reports: ReportsService) {}

  /** What a scheduler would call. */
  @Post('nightly')
  writeNightly(): Promise<Report> {
    return this.reports.writeNightly();
  }

  @Get('nightly')
  @CacheResponse('30s')
  findToday(): Promise<Report> {
    return this.reports.findToday();
  }

  @Delete()
  deleteOlderThan(@Query('days', ParseIntPipe) days: number): Promise<{ deleted: number }> {
    return this.reports.deleteOlderThan(days);
  }
}
