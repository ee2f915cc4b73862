"""What ``import kattn_cli as kattn`` offers; each name is imported when it is asked for."""
