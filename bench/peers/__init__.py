"""What Firesteel is compared with. Each module is a program that prints one line of JSON."""
